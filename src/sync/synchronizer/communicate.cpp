// The communication thread: decides which bucket leaves next, agrees on it where needed, and runs the sentence.
#include <fmt/format.h>

#include "sync/synchronizer/impl.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/error.hpp"

namespace syncopate {

void Synchronizer::Impl::communicate(const std::stop_token& stop) {
  try {
    while (const std::optional<schedule::Bucket> run = next_to_leave(stop)) exchange(*run, stop);
  } catch (...) {
    tell_the_others(std::current_exception());
    progress_.change([](Progress& progress) { progress.failure = std::current_exception(); });
  }
}

/// Aborts the group with this failure: the other ranks wait for this rank's part of a bucket and shall learn the cause.
/// If the group itself has failed, they know already, and its first report stays.
void Synchronizer::Impl::tell_the_others(const std::exception_ptr& failure) noexcept try {
  if (exchange_.name != "none") std::rethrow_exception(failure);
} catch (const std::exception& error) {
  group_.abort(error.what());
} catch (...) {
  group_.abort("its communication failed");
}

std::optional<schedule::Bucket> Synchronizer::Impl::next_to_leave(const std::stop_token& stop) {
  std::optional<std::size_t> first;
  bool needs_agreement = false;
  progress_.wait_until(
      base::kNever,
      [&](const Progress& progress) {
        first = progress.queue->offer();
        return first || stop.stop_requested();
      },
      [&](const Progress& progress) { needs_agreement = progress.queue->need_agreement(); });
  if (!first || stop.stop_requested()) return std::nullopt;
  if (needs_agreement) first = agreed(*first);
  return progress_.with([&](Progress& progress) {
    progress.taken.push_back(progress.queue->take(*first));
    return progress.taken.back();
  });
}

/// The least that any rank offers. A result above this rank's own offer means that a rank breaks this rule.
std::size_t Synchronizer::Impl::agreed(std::size_t offer) {
  if (group_.size() == 1) return offer;
  auto first = static_cast<std::int64_t>(offer);
  sync::run(group_, Collective::allreduce, Buffer(&first, 1, DType::i64),
            {.op = ReduceOp::max, .name = "how far every rank is ready"});
  const bool possible = first >= static_cast<std::int64_t>(offer) && first < static_cast<std::int64_t>(count());
  if (!possible || progress_.with([&](const Progress& progress) {
        return !progress.taken.empty() && static_cast<std::size_t>(first) >= progress.taken.back().first;
      }))
    throw Corrupt(fmt::format("ranks agreed to send gradients from {} on, which this rank cannot", first));
  return static_cast<std::size_t>(first);
}

void Synchronizer::Impl::exchange(const schedule::Bucket& leaving, const std::stop_token& stop) {
  sync::Bucket& bucket = buckets_.of(leaving);
  const double begin_s = clock_s_() - step_begin_s_;
  const double end_s = sync::step(bucket, context_, clock_s_) - step_begin_s_;
  bool all_sent = false;
  progress_.change([&](Progress& progress) {
    progress.record.exchanges.push_back({leaving, bucket.bytes, 0, begin_s, end_s});
    ++progress.combined;
    all_sent = progress.queue->all_sent();
  });
  if (all_sent && updater_.ends_in_weights()) deliver_all(stop);
}

/// Delivers in the reverse order of exchange, because the next forward pass needs the first layers' weights first.
void Synchronizer::Impl::deliver_all(const std::stop_token& stop) {
  updater_.combined();
  const std::vector<schedule::Bucket> taken = progress_.with([](const Progress& progress) { return progress.taken; });
  for (std::size_t i = taken.size(); i-- > 0 && !stop.stop_requested();) {
    sync::deliver(buckets_.of(taken[i]), context_);
    if (i == 0) updater_.end_step();
    progress_.change([](Progress& progress) { ++progress.delivered; });
  }
}

}  // namespace syncopate
