// Training: steps of many ranks in virtual time under one policy.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "simulate/candidate.hpp"
#include "syncopate/simulate.hpp"
#include "syncopate/trace.hpp"

namespace syncopate::simulate {

/// Seconds of one rank's step, by layer in forward order.
struct Work {
  std::vector<double> forward_s, backward_s;
};

/// Whether steps differ, so that several are averaged.
[[nodiscard]] bool is_random(const SimulateOptions& options);
/// Throws Misuse unless `slow` is one of `ranks` ranks, with a factor above 0 and a share of steps above 0, at most 1.
void require_slow_rank(const Handicap& slow, int ranks);

class Workload final {
 public:
  Workload(const schedule::Timeline& timeline, SimulateOptions options);
  /// A layer's share of the forward pass is its share of the backward pass. Noise is log-normal with mean 1, a function
  /// of seed, step, rank, layer and pass, so it is equal for every policy.
  [[nodiscard]] Work of(std::uint64_t step, std::uint32_t rank) const;

 private:
  const schedule::Timeline& timeline_;
  SimulateOptions options_;
  double backward_s_ = 0;  ///< sum over all layers
};

/// The time at which each rank finishes a collective of a number of bytes, given the times of the calls.
using Channel =
    std::function<std::vector<double>(Collective, std::uint64_t bytes, const std::vector<double>& called_s)>;
/// The time at which each rank has the result of an agreement, given the times of entry.
using Agreement = std::function<std::vector<double>(const std::vector<double>& entered_s)>;

/// Records rank 0's spans of each step; computing is recorded without the delay that exchanges cause.
class SpanRecorder final {
 public:
  void begin_step(double at_s) { begin_s_ = at_s; }
  void end_step(double at_s) { end_s_ = at_s; }
  void add(Span span) { spans_.push_back(std::move(span)); }
  /// The spans of the last step; 0 is its start.
  [[nodiscard]] std::vector<Span> last_step() const;

 private:
  double begin_s_ = 0, end_s_ = 0;
  std::vector<Span> spans_;
};

struct Training {
  const schedule::Timeline& timeline;
  const Workload& workload;
  const Channel& channel;
  const Agreement& agreement;        ///< an agreement on one number (online)
  std::size_t ranks = 1;             ///< timelines; the channel may stand for more ranks
  double cpu_s_per_byte = 0;         ///< CPU time per byte that an all-reduce takes from computing
  SpanRecorder* recorder = nullptr;  ///< optional
};

/// The time at which the slowest rank ends each of `steps` steps.
[[nodiscard]] std::vector<double> run_partition(const Training& training, const schedule::Partition& partition,
                                                int steps);
/// The event rule as the synchronizer runs it (sync/synchronizer/communication_thread.cpp), with the production
/// dispatch on every rank. A rank whose channel is free enters the agreement as soon as one more gradient is ready than
/// has left. The bucket holds the gradients that all ranks had ready when they entered.
[[nodiscard]] std::vector<double> run_online(const Training& training, int steps);
/// DeAR (Zhang et al., ICDCS 2023): reduce-scatter of each bucket during the backward pass, all-gather during the next
/// forward pass, first layers first. A step ends with its backward pass, because its exchange ends in the next step.
[[nodiscard]] std::vector<double> run_dear(const Training& training, const schedule::Partition& partition, int steps);

}  // namespace syncopate::simulate
