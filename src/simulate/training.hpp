// Training: steps of many ranks in virtual time under one policy.
#pragma once

#include <functional>
#include <vector>

#include "simulate/candidate.hpp"
#include "simulate/workload.hpp"
#include "syncopate/trace.hpp"

namespace syncopate::simulate {

/// When each rank has finished a collective of so many bytes, given when each calls.
using Channel =
    std::function<std::vector<double>(Collective, std::uint64_t bytes, const std::vector<double>& called_s)>;
/// When each rank knows on what all agreed, given when each entered the agreement.
using Agreement = std::function<std::vector<double>(const std::vector<double>& entered_s)>;

/// What rank 0 does, step by step; computing as it would be undisturbed by exchanges.
class Diary final {
 public:
  void begin_step(double at_s) { begin_s_ = at_s; }
  void end_step(double at_s) { end_s_ = at_s; }
  void add(Span span) { spans_.push_back(std::move(span)); }
  /// What falls into the last step, from its begin on.
  [[nodiscard]] std::vector<Span> last_step() const;

 private:
  double begin_s_ = 0, end_s_ = 0;
  std::vector<Span> spans_;
};

struct Training {
  const schedule::Timeline& timeline;
  const Workload& workload;
  const Channel& channel;
  const Agreement& agreement;  ///< of one number (online)
  std::size_t ranks = 1;       ///< timelines of their own; the channel may stand for more
  double cpu_s_per_byte = 0;   ///< what an all-reduce takes from computing
  Diary* diary = nullptr;      ///< may be null
};

/// When the slowest rank has ended each of `steps` steps.
[[nodiscard]] std::vector<double> run_partition(const Training& training, const schedule::Partition& partition,
                                                int steps);
/// The event rule as the synchronizer runs it (sync/communicate), with the production dispatch on every rank: a rank
/// whose channel is free enters the agreement as soon as one gradient more is ready than has left; what leaves is the
/// least of what each had ready when it entered.
[[nodiscard]] std::vector<double> run_online(const Training& training, int steps);
/// Reduce-scatter of each bucket behind the backward pass, all-gather, first layers first, behind the next forward pass
/// (Zhang et al., "DeAR", ICDCS 2023). A step ends with its backward pass, since its exchange ends in the next.
[[nodiscard]] std::vector<double> run_dear(const Training& training, const schedule::Partition& partition, int steps);

}  // namespace syncopate::simulate
