// The all-reduce of notices. It computes maxima, so every rank derives the same verdict from the same three numbers.
#include "ranks/notices.hpp"

#include <array>
#include <cmath>
#include <utility>

#include "syncopate/collective.hpp"

namespace syncopate::train {
namespace {

constexpr double kPace_s = 0.25;

}  // namespace

void Notices::not_finite(std::uint64_t step, const std::string& what) {
  if (!first_.empty()) return;
  first_ = what;
  found_ = static_cast<std::int64_t>(step) * group_.size() + group_.rank();
}

void Notices::exchange_when_due(double last_step_s) {
  if (steps_until_exchange_ == 0) return exchange(last_step_s);
  --steps_until_exchange_;
}

void Notices::exchange(double last_step_s) {
  std::array<std::int64_t, 3> most{asked_by_, static_cast<std::int64_t>(last_step_s * 1e9), -found_};
  if (!alone_) allreduce(group_, std::span<std::int64_t>(most), {.op = ReduceOp::max, .name = "between steps"});
  signal_ = static_cast<int>(most[0]);
  // All ranks use the same step time.
  steps_until_exchange_ = most[1] > 0 ? static_cast<std::uint64_t>(kPace_s * 1e9 / static_cast<double>(most[1])) : 0;
  const bool somebody = most[2] != -kNever, first = somebody && !is_reported_;
  if (first && -most[2] == found_) to_say_ = first_;
  is_reported_ = is_reported_ || somebody;
}

std::string Notices::take_not_finite() { return std::exchange(to_say_, {}); }

}  // namespace syncopate::train
