// One rank of the exchange benchmark: a known question, then timed steps on noise, each subject in turn.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <sstream>

#include "bench/exchange/benchmark.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/group.hpp"
#include "syncopate/synchronizer.hpp"
#include "syncopate/tooling/codec_loopback.hpp"

namespace syncopate::tools::bench {

namespace {

/// A gradient and what averages it over the ranks.
struct Exchanger {
  std::span<float> gradient;
  std::function<void()> average;
};

Exchanger dense_exchanger(Group& group, const ExchangeSubject& subject, const ExchangePlace& place) {
  const auto memory = group.allocate<float>(place.elements);
  const std::span<float> gradient(memory.get(), place.elements);
  CollectiveOptions options{.op = ReduceOp::average, .algorithm = subject.algorithm, .name = "gradient"};
  if (subject.algorithm == "torus_2d")
    options.tuning = {.rows = static_cast<std::uint32_t>(place.hosts),
                      .columns = static_cast<std::uint32_t>(place.ranks_per_host)};
  return {gradient, [memory, gradient, options, &group] { allreduce(group, Buffer(gradient), options); }};
}

Exchanger coded_exchanger(Group& group, const ExchangeSubject& subject, const ExchangePlace& place) {
  SynchronizerOptions options{.policy = "single", .coding = {.codec = subject.codec, .dense_below = 0}};
  options.exchange = subject.exchange;
  options.algorithm = subject.algorithm;
  const auto synchronizer = std::make_shared<Synchronizer>(
      group, std::vector<Gradient>{{.name = "gradient", .elements = place.elements}}, options);
  const std::span<float> gradient(static_cast<float*>(synchronizer->gradient(0).data), place.elements);
  return {gradient, [synchronizer] {
            synchronizer->ready(0);
            synchronizer->wait();
          }};
}

/// Every `stride`-th element is a small whole number that differs from rank to rank, the others are zero: at most as
/// many as top-k of the density 1/stride selects, of every part too, so that nothing may be lost.
class ThresholdProbe final {
 public:
  ThresholdProbe(double density, int ranks)
      : stride_(static_cast<std::size_t>(std::ceil(1 / density))), ranks_(ranks) {}
  void write(int rank, std::span<float> gradient) const {
    std::ranges::fill(gradient, 0.0F);
    for (std::size_t i = 0; i < gradient.size(); i += stride_) gradient[i] = value(rank, i);
  }
  [[nodiscard]] bool is_answered_by(std::span<const float> average) const {
    constexpr double kTolerance = 1e-5;
    for (std::size_t i = 0; i < average.size(); ++i) {
      double expected = 0;
      for (int rank = 0; i % stride_ == 0 && rank < ranks_; ++rank) expected += value(rank, i);
      if (!(std::abs(average[i] - expected / ranks_) <= kTolerance)) return false;
    }
    return true;
  }

 private:
  [[nodiscard]] float value(int rank, std::size_t i) const {
    return static_cast<float>(1 + (i / stride_ + 7 * static_cast<std::size_t>(rank)) % 5);
  }
  std::size_t stride_;
  int ranks_;
};

/// Normal elements, different on every rank and in every step.
class Noise final {
 public:
  explicit Noise(int rank) : block_(std::size_t{1} << 20) {
    std::mt19937_64 random(static_cast<std::uint64_t>(rank) + 1);
    std::normal_distribution<float> normal;
    for (float& value : block_) value = normal(random);
  }
  void write(std::span<float> gradient) {
    first_ = (first_ + 617'001) % block_.size();
    std::size_t from = first_;
    for (std::size_t at = 0; at < gradient.size(); from = 0) {
      const std::size_t count = std::min(block_.size() - from, gradient.size() - at);
      std::copy_n(block_.begin() + static_cast<std::ptrdiff_t>(from), count,
                  gradient.begin() + static_cast<std::ptrdiff_t>(at));
      at += count;
    }
  }

 private:
  std::vector<float> block_;
  std::size_t first_ = 0;
};

double greatest(Group& group, double value) {
  allreduce(group, std::span(&value, 1), {.op = ReduceOp::max});
  return value;
}

bool all_say(Group& group, bool mine) { return greatest(group, mine ? 0 : 1) == 0; }

/// Bytes that this host's port has sent (proc(5), net/dev); 0 without a port.
double port_sent_bytes() {
  std::ifstream file("/proc/net/dev");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find("eth0:");
    if (colon == std::string::npos) continue;
    std::istringstream fields(line.substr(colon + 5));
    double field = 0;
    for (int column = 0; column < 9; ++column) fields >> field;
    return field;
  }
  return 0;
}

struct Timed {
  double seconds = 0;     ///< of the slowest rank
  double port_bytes = 0;  ///< of the host that sent most
};

Timed time_one(Group& group, const Exchanger& exchanger) {
  barrier(group);
  const double sent = port_sent_bytes();
  barrier(group);
  const auto begin = std::chrono::steady_clock::now();
  exchanger.average();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return {.seconds = greatest(group, seconds), .port_bytes = greatest(group, port_sent_bytes() - sent)};
}

nlohmann::json measure_subject(Group& group, const ExchangeSubject& subject, const ExchangePlace& place, int steps) {
  const Exchanger exchanger =
      subject.dense() ? dense_exchanger(group, subject, place) : coded_exchanger(group, subject, place);
  const ThresholdProbe question(subject.density, group.size());
  question.write(group.rank(), exchanger.gradient);
  exchanger.average();
  bool correct = all_say(group, question.is_answered_by(exchanger.gradient));
  Noise noise(group.rank());
  std::vector<double> seconds;
  double port_bytes = 0;
  for (int step = 0; step < steps; ++step) {
    noise.write(exchanger.gradient);
    const Timed timed = time_one(group, exchanger);
    seconds.push_back(timed.seconds);
    port_bytes = std::max(port_bytes, timed.port_bytes);
  }
  const double digest = read_once(exchanger.gradient);  // equal on all ranks: the greatest is minus the greatest of -x
  correct = correct && greatest(group, digest) == -greatest(group, -digest);
  return {{"exchange", subject.exchange},  {"codec", subject.codec},   {"algorithm", subject.algorithm},
          {"block_seconds", seconds},      {"port_bytes", port_bytes}, {"correct", correct},
          {"transport", group.transport()}};
}

}  // namespace

int run_exchanger(const ExchangeRequest& request) {
  const ExchangePlace place = place_of(request);
  const auto group = Group::join();
  for (const ExchangeSubject& subject : subjects_of(request)) {
    const nlohmann::json row = measure_subject(*group, subject, place, request.steps);
    if (group->rank() == 0) print_row(row);
  }
  return 0;
}

}  // namespace syncopate::tools::bench
