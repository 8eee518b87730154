// The communication thread: takes buckets in the partition's order, or as ranks agree, and carries out their rounds.
#include <fmt/format.h>

#include "sync/synchronizer/impl.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/error.hpp"

namespace syncopate {

void Synchronizer::Impl::communicate(const std::stop_token& stop) {
  try {
    while (const std::optional<Underway> leaving = next_to_leave(stop)) {
      exchange(*leaving);
      const bool all_combined = progress_.with([](const Progress& progress) {
        return progress.queue->all_sent() && progress.combined == progress.taken.size();
      });
      if (all_combined && flow_.updater.ends_in_weights()) deliver_all();
    }
  } catch (...) {
    fail(std::current_exception());
  }
}

std::optional<Synchronizer::Impl::Underway> Synchronizer::Impl::next_to_leave(const std::stop_token& stop) {
  std::optional<Underway> ready;
  std::optional<std::size_t> first;
  bool needs_agreement = false;
  const auto is_over = [&](const Progress& progress) {
    return progress.failure || progress.abandoned || (stop.stop_requested() && progress.is_idle());
  };
  progress_.wait_until(
      base::kNever,
      [&](const Progress& progress) {
        if (is_over(progress)) return true;
        return prepares_ahead(progress) ? !progress.prepared.empty() : progress.queue->offer().has_value();
      },
      [&](Progress& progress) {
        if (is_over(progress)) return;
        if (prepares_ahead(progress)) {
          ready = progress.prepared.front();
          progress.prepared.pop_front();
        } else {
          first = progress.queue->offer();
          needs_agreement = progress.queue->need_agreement();
        }
      });
  if (!first) return ready;
  if (needs_agreement) first = agreed(*first);
  return underway(progress_.with([&](Progress& progress) {
    progress.taken.push_back(progress.queue->take(*first));
    return progress.taken.back();
  }));
}

/// The least that any rank offers. A result above this rank's own offer means that a rank breaks this rule.
std::size_t Synchronizer::Impl::agreed(std::size_t offer) {
  if (flow_.group.size() == 1) return offer;
  auto first = static_cast<std::int64_t>(offer);
  sync::run(flow_.group, Collective::allreduce, Buffer(&first, 1, DType::i64),
            {.op = ReduceOp::max, .name = "how far every rank is ready"});
  const bool possible = first >= static_cast<std::int64_t>(offer) && first < static_cast<std::int64_t>(count());
  if (!possible || progress_.with([&](const Progress& progress) {
        return !progress.taken.empty() && static_cast<std::size_t>(first) >= progress.taken.back().first;
      }))
    throw Corrupt(fmt::format("ranks agreed to send gradients from {} on, which this rank cannot", first));
  return static_cast<std::size_t>(first);
}

/// An exchange's time in the record is that in which no other can use the network: with coding where it is not hidden.
void Synchronizer::Impl::exchange(const Underway& leaving) {
  sync::Bucket& bucket = *leaving.bucket;
  bool is_complete = true;
  double end_s = 0;
  const auto averaged = [&] { end_s = clock_s_() - step_begin_s_; };
  if (!leaving.is_prepared) {
    sync::run_bucket(bucket, flow_.context, averaged);
  } else {
    sync::combine(bucket, flow_.context);
    is_complete = flow_.updater.ends_in_weights();
    if (is_complete) sync::complete(bucket, flow_.context);
    averaged();
    if (is_complete) flow_.updater.apply(bucket);
  }
  progress_.change([&](Progress& progress) {
    auto& exchanges = progress.record.exchanges;
    const double begin_s = exchanges.empty() ? leaving.begin_s : std::max(leaving.begin_s, exchanges.back().end_s);
    exchanges.push_back({leaving.gradients, bucket.bytes, 0, begin_s, end_s});
    if (is_complete)
      ++progress.combined;
    else
      progress.arrived.push_back(leaving);
  });
}

/// Delivers in the reverse order of exchange, because the next forward pass needs the first layers' weights first.
void Synchronizer::Impl::deliver_all() {
  flow_.updater.combined();
  const std::vector<schedule::Bucket> taken = progress_.with([](const Progress& progress) { return progress.taken; });
  const auto is_abandoned = [this] {
    return progress_.with([](const Progress& progress) { return progress.abandoned; });
  };
  for (std::size_t i = taken.size(); i-- > 0 && !is_abandoned();) {
    sync::deliver(buckets_.of(taken[i]), flow_.context);
    if (i == 0) flow_.updater.end_step();
    progress_.change([](Progress& progress) { ++progress.delivered; });
  }
}

Synchronizer::Impl::Underway Synchronizer::Impl::underway(const schedule::Bucket& leaving) {
  return {&buckets_.of(leaving), leaving, clock_s_() - step_begin_s_};
}

/// Aborts the group with this failure: the other ranks wait for this rank's part of a bucket and shall learn the cause.
/// If the group itself has failed, they know already, and its first report stays; and so does the first failure here.
void Synchronizer::Impl::fail(const std::exception_ptr& failure) noexcept {
  try {
    if (flow_.exchange.name != "none") std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    flow_.group.abort(error.what());
  } catch (...) {
    flow_.group.abort("its communication failed");
  }
  progress_.change([&](Progress& progress) {
    if (!progress.failure) progress.failure = failure;
  });
}

}  // namespace syncopate
