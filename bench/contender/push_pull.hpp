// Push and pull: an exchange of whole vectors with servers, timed and checked on any transport.
//
// A round: every worker has an update of the whole vector, all wait for each other, then each sends its update and gets
// an answer as long. It lasts as long as on its slowest worker. Between rounds, untimed, answers are checked and the
// next updates written. Workers meet in a group of this library, which is silent while a round runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "measure.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/group.hpp"

namespace contender {

/// Updates of the workers, and the resulting weights. All numbers are whole and exact in f32. They repeat after a
/// prime number of elements, so that an element at a wrong place of a block or a chunk has a wrong value.
class Updates final {
 public:
  explicit Updates(int workers) : workers_(workers), weights_(kPeriod, 0.0F) {}

  /// Element i of worker w in round r is W (1 + (31 i + 7 w + r) mod 13): averages of W workers are whole too.
  void write(std::span<float> vector, int worker, int round) const {
    const std::vector<float> period = period_of(worker, round);
    for (std::size_t at = 0; at < vector.size(); at += kPeriod)
      std::memcpy(vector.data() + at, period.data(), sizeof(float) * std::min(kPeriod, vector.size() - at));
  }
  /// Weights that were 0 at first go down by the average of all workers' updates of the round.
  void descend(int round) {
    for (int worker = 0; worker < workers_; ++worker) {
      const std::vector<float> period = period_of(worker, round);
      for (std::size_t i = 0; i < kPeriod; ++i) weights_[i] -= period[i] / static_cast<float>(workers_);
    }
  }
  [[nodiscard]] bool are_weights(std::span<const float> vector) const { return repeats(vector, weights_); }
  [[nodiscard]] bool are_updates(std::span<const float> vector, int worker, int round) const {
    return repeats(vector, period_of(worker, round));
  }

 private:
  static constexpr std::size_t kPeriod = 4099;

  [[nodiscard]] std::vector<float> period_of(int worker, int round) const {
    std::vector<float> period(kPeriod);
    for (std::size_t i = 0; i < kPeriod; ++i)
      period[i] = static_cast<float>(workers_ * (1 + (31 * static_cast<int>(i) + 7 * worker + round) % 13));
    return period;
  }
  static bool repeats(std::span<const float> vector, const std::vector<float>& period) {
    for (std::size_t at = 0; at < vector.size(); at += kPeriod)
      if (!std::ranges::equal(vector.subspan(at, std::min(kPeriod, vector.size() - at)),
                              std::span(period).first(std::min(kPeriod, vector.size() - at))))
        return false;
    return true;
  }

  const int workers_;
  std::vector<float> weights_;
};

struct PushPull {
  std::string contender;
  std::size_t bytes = 0;               ///< of the vector
  int untimed = 2, timed = 5;          ///< rounds: connections, caches and fresh memory are paid for in the first ones
  std::function<void(int)> prepare;    ///< writes this worker's update of a round
  std::function<void()> run;           ///< a round
  std::function<bool(int)> is_right;   ///< the answer of a round
  std::function<double()> of_servers;  ///< processor time so far of the servers that this process answers for
};

/// Runs all rounds, on every worker of the group; returns the raw row.
inline std::string measure(syncopate::Group& group, const PushPull& job) {
  std::vector<double> seconds, cpu_seconds, rest{0, 0};  // rest: the servers' time, and whether an answer was wrong
  for (int round = 0; round < job.untimed + job.timed; ++round) {
    if (round == job.untimed) rest[0] -= job.of_servers();
    job.prepare(round);
    syncopate::barrier(group);
    const double begin = wall_seconds(), cpu_begin = processor_seconds();
    job.run();
    const double taken = wall_seconds() - begin, cpu_taken = processor_seconds() - cpu_begin;
    if (!job.is_right(round)) rest[1] = 1;
    if (round < job.untimed) continue;
    seconds.push_back(taken);
    cpu_seconds.push_back(cpu_taken);
  }
  syncopate::barrier(group);
  rest[0] += job.of_servers();
  const auto combine = [&](std::vector<double>& values, syncopate::ReduceOp op) {
    syncopate::allreduce(group, std::span<double>(values), {.op = op, .root = 0, .algorithm = "auto", .name = {}});
  };
  combine(seconds, syncopate::ReduceOp::max);
  combine(cpu_seconds, syncopate::ReduceOp::sum);
  combine(rest, syncopate::ReduceOp::sum);
  for (double& cpu : cpu_seconds) cpu += rest[0] / job.timed;
  std::string row = "{\"contender\":\"" + job.contender + "\",\"bytes\":" + std::to_string(job.bytes);
  print_list(row, "block_seconds", seconds);
  print_list(row, "block_cpu_seconds", cpu_seconds);
  return row + ",\"correct\":" + (rest[1] == 0 ? "true" : "false") + "}";
}

}  // namespace contender
