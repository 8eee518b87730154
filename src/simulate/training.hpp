// Training: steps of many ranks in virtual time under one policy.
#pragma once

#include <functional>
#include <vector>

#include "simulate/candidate.hpp"
#include "simulate/workload.hpp"
#include "syncopate/trace.hpp"

namespace syncopate::simulate {

/// When each rank finishes a collective of so many bytes, given when each calls.
using Channel =
    std::function<std::vector<double>(Collective, std::uint64_t bytes, const std::vector<double>& called_s)>;
/// When each rank knows the result of an agreement, given when each entered it.
using Agreement = std::function<std::vector<double>(const std::vector<double>& entered_s)>;

/// What rank 0 does in each step; computing is recorded without the delay that exchanges cause.
class Diary final {
 public:
  void begin_step(double at_s) { begin_s_ = at_s; }
  void end_step(double at_s) { end_s_ = at_s; }
  void add(Span span) { spans_.push_back(std::move(span)); }
  /// The spans of the last step; 0 is its begin.
  [[nodiscard]] std::vector<Span> last_step() const;

 private:
  double begin_s_ = 0, end_s_ = 0;
  std::vector<Span> spans_;
};

struct Training {
  const schedule::Timeline& timeline;
  const Workload& workload;
  const Channel& channel;
  const Agreement& agreement;  ///< an agreement on one number (online)
  std::size_t ranks = 1;       ///< timelines; the channel may stand for more ranks
  double cpu_s_per_byte = 0;   ///< what an all-reduce takes from computing per byte
  Diary* diary = nullptr;      ///< optional
};

/// When the slowest rank ends each of `steps` steps.
[[nodiscard]] std::vector<double> run_partition(const Training& training, const schedule::Partition& partition,
                                                int steps);
/// The event rule as the synchronizer runs it (sync/communicate), with the production dispatch on every rank. A rank
/// whose channel is free enters the agreement as soon as one more gradient is ready than has left. What leaves is the
/// least of what the ranks had ready when they entered.
[[nodiscard]] std::vector<double> run_online(const Training& training, int steps);
/// DeAR (Zhang et al., ICDCS 2023): reduce-scatter of each bucket during the backward pass, all-gather during the next
/// forward pass, first layers first. A step ends with its backward pass, because its exchange ends in the next step.
[[nodiscard]] std::vector<double> run_dear(const Training& training, const schedule::Partition& partition, int steps);

}  // namespace syncopate::simulate
