// Waiting, and the work between steps: statistics, the plan of the next step, spans of planned buckets.
#include "base/require.hpp"
#include "collective/group/access.hpp"
#include "sync/flow.hpp"
#include "sync/planning/proposal.hpp"
#include "sync/synchronizer/impl.hpp"
#include "syncopate/collective.hpp"

namespace syncopate {

void Synchronizer::Impl::Progress::begin_step(std::size_t gradients) {
  taken.clear();
  prepared.clear();
  arrived.clear();
  combined = delivered = returned = 0;
  record = {};
  record.ready_s.assign(gradients, 0);
}

std::optional<std::size_t> Synchronizer::Impl::Progress::bucket_of(std::size_t i) const {
  for (std::size_t bucket = 0; bucket < taken.size(); ++bucket)
    if (taken[bucket].first <= i && i <= taken[bucket].last) return bucket;
  return std::nullopt;
}

bool Synchronizer::Impl::is_here(const Progress& progress, std::size_t bucket) const {
  if (!flow_.updater.ends_in_weights()) return bucket < progress.combined;
  return progress.queue->all_sent() && bucket + progress.delivered >= progress.taken.size();
}

bool Synchronizer::Impl::is_complete(const Progress& progress) const {
  return progress.queue->all_sent() &&
         is_here(progress, flow_.updater.ends_in_weights() ? 0 : progress.taken.size() - 1);
}

void Synchronizer::Impl::poll_callback() try {
  GroupAccess::poll_callback(flow_.group);
} catch (const std::exception& error) {
  flow_.group.abort(error.what());
  throw;
}

template <class Ready>
void Synchronizer::Impl::wait_for(const Ready& is_there) {
  std::exception_ptr failure;
  while (!progress_.wait_until(
      GroupAccess::next_look(flow_.group, base::kNever),
      [&](const Progress& progress) { return progress.failure || is_there(progress); },
      [&](const Progress& progress) { failure = progress.failure; })) {
    poll_callback();
  }
  if (failure) std::rethrow_exception(failure);
}

void Synchronizer::Impl::wait() {
  const double begin_s = clock_s_();
  {
    const sync::Traced span(flow_.options.trace, "wait", "wait", 0);
    require_ready(0, flow_.gradients.size() - 1);
    wait_for([&](const Progress& progress) { return is_complete(progress); });
  }
  finish_step(clock_s_() - begin_s);
}

BucketInfo Synchronizer::Impl::wait(std::size_t i) {
  base::require(i < flow_.gradients.size(), "there is no gradient {}; allowed: 0 to {}", i, flow_.gradients.size() - 1);
  schedule::Bucket needed{0, flow_.gradients.size() - 1};  // buckets leave in order; weights follow the last bucket
  if (!flow_.updater.ends_in_weights())
    needed.first = progress_.with([&](const Progress& progress) { return progress.queue->company_of(i).first; });
  require_ready(needed.first, needed.last);
  schedule::Bucket bucket;
  wait_for([&](const Progress& progress) {
    const std::optional<std::size_t> index = progress.bucket_of(i);
    if (!index || !is_here(progress, *index)) return false;
    bucket = progress.taken[*index];
    return true;
  });
  return info_of(bucket);
}

std::optional<BucketInfo> Synchronizer::Impl::next_bucket() {
  base::require(!flow_.updater.ends_in_weights(), "exchange {} ends in weights: wait for those of a gradient",
                flow_.exchange.name);
  require_ready(0, flow_.gradients.size() - 1);
  std::size_t index = 0;
  bool is_last = false;
  wait_for([&](const Progress& progress) {
    index = progress.returned;
    is_last = progress.queue->all_sent() && index == progress.taken.size();
    return is_last || index < progress.combined;
  });
  if (is_last) return std::nullopt;
  return progress_.with([&](Progress& progress) { return info_of(progress.taken[progress.returned++]); });
}

void Synchronizer::Impl::finish_step(double waited_s) {
  // The averaged gradients are bitwise equal on all ranks, so the norm is too.
  if (flow_.options.clip_norm > 0)
    statistics_.gradient_norm =
        flow_.updater.ends_in_weights() ? flow_.updater.norm() : sync::clip(flow_.arena, flow_.options.clip_norm);
  flow_.end_step();
  statistics_.wait_s = waited_s;
  statistics_.measuring = planner_.is_measuring();
  statistics_.predicted_s = planner_.forecast() ? planner_.forecast()->step_s : 0;
  trace_plan();
  sync::planning::StepRecord record;
  progress_.with([&](Progress& progress) {
    infos_.clear();
    for (const schedule::Bucket& bucket : progress.taken) infos_.push_back(info_of(bucket));
    record = std::move(progress.record);
    progress.queue->restart();
    progress.begin_step(flow_.gradients.size());
  });
  record.end_s = clock_s_() - step_begin_s_;
  if (flow_.exchange.name != "none") review(planner_.note(std::move(record)));
  buckets_.limit();
  const std::uint64_t sent = flow_.group.traffic().sent_bytes;
  statistics_.wire_bytes = sent - sent_before_;
  sent_before_ = sent;
  statistics_.payload_bytes = flow_.reports.payload_bytes - encoded_before_;
  encoded_before_ = flow_.reports.payload_bytes;
  step_begin_s_ = clock_s_();
}

std::vector<SentShare> Synchronizer::Impl::sent_shares() const {
  std::vector<SentShare> shares;
  for (const compress::SelectionReport& of : flow_.reports.selections)
    shares.push_back({of.sent, of.elements, of.threshold, of.spread, of.proposed, of.importances});
  return shares;
}

// Between steps no rank has an operation in progress, so the ranks communicate here.
void Synchronizer::Impl::review(sync::planning::Planner::Review review) {
  using Review = sync::planning::Planner::Review;
  if (review == Review::none) return;
  if (review == Review::plan) {
    for (sync::planning::Measurement& stage : planner_.measurements()) sync::planning::combine(flow_.group, stage);
    planner_.adopt(sync::planning::agree(flow_.group, count(), planner_.plan()));
  }
  if (review == Review::check) {
    std::int32_t drifted = planner_.has_drifted() ? 1 : 0;
    broadcast(flow_.group, Buffer(&drifted, 1, DType::i32), {.name = "whether rank 0's times have drifted"});
    if (drifted == 0) return;
    planner_.measure_again();
  }
  set_partition();
}

/// Planned spans count from the step's begin, as its other spans; or from the trace's, if that began later.
void Synchronizer::Impl::trace_plan() {
  Trace* const trace = flow_.options.trace;
  if (trace == nullptr || !trace->running() || !planner_.forecast()) return;
  const double begin_s = std::max(0.0, trace->now_s() - (clock_s_() - step_begin_s_));
  for (const schedule::BucketTiming& timing : planner_.forecast()->exchanges.timings)
    trace->add(
        {"planned", buckets_.name_of(timing.bucket), begin_s + timing.begin_s, begin_s + timing.end_s, timing.bytes});
}

}  // namespace syncopate
