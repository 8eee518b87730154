// The synchronizer: buckets leave on the communication thread while the backward pass still fills others.
#include <algorithm>
#include <cstring>
#include <system_error>

#include "base/env.hpp"
#include "base/require.hpp"
#include "sync/flow.hpp"
#include "sync/planning/proposal.hpp"
#include "sync/synchronizer/impl.hpp"
#include "syncopate/collective.hpp"

namespace syncopate {

namespace {

std::function<double()> clock_of(const SynchronizerOptions& options) {
  if (options.clock_s) return options.clock_s;
  return [] { return base::seconds(base::SteadyClock().now().time_since_epoch()); };
}

schedule::Timeline sizes_of(const std::vector<Gradient>& gradients) {
  schedule::Timeline timeline;
  for (const Gradient& gradient : gradients)
    timeline.layers.push_back({gradient.name, gradient.elements * size_of(gradient.dtype), 0});
  return timeline;
}

schedule::PolicyOptions policy_options(const SynchronizerOptions& options, int ranks) {
  schedule::PolicyOptions result{.fusion_bytes = options.fusion_bytes, .ranks = ranks};
  if (!options.cost) return result;
  schedule::CostInputs inputs;
  for (const auto& [bytes, seconds] : options.cost->table) inputs.points.push_back({bytes, seconds});
  result.cost = schedule::cost_model_named("table").cost(inputs);
  result.cost->cpu_s_per_byte = options.cost->cpu_s_per_byte;
  return result;
}

/// Without an exchange there is nothing to plan and no rank to agree with.
sync::planning::PlannerOptions planner_options_of(const SynchronizerOptions& options) {
  const schedule::Policy& policy = schedule::policy_named(options.policy, options.catalogue);
  const bool alone = options.exchange == "none" && policy.needs != schedule::Needs::sizes;
  return {alone ? "single" : options.policy, options.cost.has_value(), options.check_every, options.catalogue};
}

/// A coding thread needs a second core, and gradients that need not be narrowed with other ranks first.
bool wants_coding_thread(const SynchronizerOptions& options, const sync::Exchange& exchange,
                         const std::vector<compress::Settings>& settings) {
  const bool codes = std::ranges::any_of(settings, [](const auto& each) { return each.codec->name != "none"; });
  return options.code_ahead && codes && !exchange.narrowing && base::processors() > 1;
}

sync::planning::Planner planner_of(Group& group, const std::vector<Gradient>& gradients,
                                   const SynchronizerOptions& options) {
  const schedule::Timeline sizes = sizes_of(gradients);
  const schedule::PolicyOptions details = policy_options(options, group.size());
  const sync::planning::PlannerOptions mine = planner_options_of(options);
  const schedule::Partition first = sync::planning::Planner(sizes, mine, details).partition();
  const sync::planning::AgreedPlan terms = sync::planning::agree(group, gradients, options, {mine, first});
  sync::planning::Planner planner(sizes, terms.planner, details);
  planner.begin_with(terms.partition);
  return planner;
}

}  // namespace

Synchronizer::Impl::Impl(Group& group, std::vector<Gradient> gradients, const SynchronizerOptions& options)
    : flow_(group, gradients, options, sync::planning::compared_settings(group, gradients, options),
            sync::GradientMemory::arena),
      clock_s_(clock_of(options)),
      planner_(planner_of(group, gradients, options)),
      buckets_(flow_.inputs, flow_.updater),
      has_coding_thread_(wants_coding_thread(options, flow_.exchange, flow_.codecs)) {
  flow_.updater.agree_on_neighbours();
  set_partition();
  for (const schedule::Bucket& bucket : planner_.partition()) infos_.push_back(info_of(bucket));
  sent_before_ = flow_.group.traffic().sent_bytes;
  step_begin_s_ = clock_s_();
  begin_threads();
}

void Synchronizer::Impl::begin_threads() try {
  communication_ = std::jthread([this](const std::stop_token& stop) { communicate(stop); });
  if (has_coding_thread_) coding_ = std::jthread([this](const std::stop_token& stop) { code(stop); });
} catch (const std::system_error& error) {
  const std::string what =
      fmt::format("rank {} cannot create a thread of the synchronizer: {}; raise the limit of threads",
                  flow_.group.rank(), error.what());
  flow_.group.abort(what);
  end(true);
  throw SystemFailure(what, {.rank = flow_.group.rank()});
}

void Synchronizer::Impl::end(bool abandoned) {
  communication_.request_stop();
  coding_.request_stop();
  progress_.change([abandoned](Progress& progress) { progress.abandoned = abandoned; });
  if (communication_.joinable()) communication_.join();
  if (coding_.joinable()) coding_.join();
}

void Synchronizer::Impl::set_partition() {
  progress_.with([&](Progress& progress) {
    progress.queue.emplace(planner_.partition(), planner_.sizes());
    progress.begin_step(flow_.gradients.size());
  });
}

BucketInfo Synchronizer::Impl::info_of(const schedule::Bucket& bucket) const {
  return {bucket.first, bucket.last, flow_.arena.bytes_of(bucket.first, bucket.last)};
}

void Synchronizer::Impl::ready(std::size_t i) {
  process_.require("a synchronizer");
  base::require(i < flow_.gradients.size(), "there is no gradient {}; allowed: 0 to {}", i, flow_.gradients.size() - 1);
  const double now_s = clock_s_();
  bool is_first = true;
  progress_.change([&](Progress& progress) {
    if (progress.accumulating || progress.failure) return;
    is_first = progress.queue->ready(i);
    progress.record.ready_s[i] = now_s - step_begin_s_;
  });
  base::require(is_first,
                "gradient '{}' became ready twice in one step; allowed: once between two calls of wait, and "
                "accumulation (accumulate) during all micro-batches but the last",
                flow_.gradients[i].name);
}

void Synchronizer::Impl::require_ready(std::size_t first, std::size_t last) {
  process_.require("a synchronizer");
  std::vector<std::size_t> missing;
  const double now_s = clock_s_();
  progress_.change([&](Progress& progress) {
    if (progress.failure) return;
    missing = progress.queue->missing();
    std::erase_if(missing, [&](std::size_t i) { return i < first || i > last; });
    if (!flow_.options.zero_missing) return;
    for (const std::size_t i : missing) {
      const Buffer gradient = flow_.arena.gradient(i);
      std::memset(gradient.data, 0, gradient.bytes().size());
      progress.queue->ready(i);
      progress.record.ready_s[i] = now_s - step_begin_s_;
    }
  });
  if (missing.empty() || flow_.options.zero_missing) return;
  const std::string& name = flow_.gradients[missing.front()].name;
  const std::string message = fmt::format(
      "gradient '{}'{} never became ready on rank {}: the backward pass did not reach it (zero_missing "
      "counts such gradients as zero)",
      name, missing.size() == 1 ? "" : fmt::format(" and {} more", missing.size() - 1), flow_.group.rank());
  if (flow_.exchange.name != "none") flow_.group.abort(message, name);
  throw Misuse(message, Where{flow_.group.rank(), -1, "wait", name});
}

Synchronizer::Synchronizer(Group& group, std::vector<Gradient> gradients, const SynchronizerOptions& options) try
    : impl_(std::make_unique<Impl>(group, std::move(gradients), options)) {
} catch (const Misuse& misuse) {
  sync::planning::refuse(group, options.exchange, misuse);
}
Synchronizer::~Synchronizer() {
  // In a forked child locks may be held and a thread awaited that it does not have.
  if (impl_->process().is_inherited())
    static_cast<void>(impl_.release());
  else
    impl_->end(std::uncaught_exceptions() > impl_->exceptions());  // updates may still use this object
}

Buffer Synchronizer::gradient(std::size_t i) const {
  base::require(i < impl_->count(), "there is no gradient {}; allowed: 0 to {}", i, impl_->count() - 1);
  return impl_->arena().gradient(i);
}
std::vector<std::shared_ptr<std::byte[]>> Synchronizer::memory() const { return impl_->arena().memory(); }
void Synchronizer::ready(std::size_t i) { impl_->ready(i); }
void Synchronizer::wait() { impl_->wait(); }
BucketInfo Synchronizer::wait(std::size_t i) { return impl_->wait(i); }
std::optional<BucketInfo> Synchronizer::next_bucket() { return impl_->next_bucket(); }
void Synchronizer::accumulate(bool on) { impl_->accumulate(on); }
std::vector<BucketInfo> Synchronizer::buckets() const { return impl_->infos(); }
StepStatistics Synchronizer::statistics() const noexcept { return impl_->statistics(); }
std::vector<SentShare> Synchronizer::sent_shares() const { return impl_->sent_shares(); }
SavedCodecState Synchronizer::save() const { return impl_->save(); }
void Synchronizer::discard_step() { impl_->discard_step(); }
void Synchronizer::restore(const SavedCodecState& saved) { impl_->restore(saved); }

void broadcast_all(Group& group, std::span<const Buffer> buffers, int root) {
  for (std::size_t i = 0; i < buffers.size(); ++i)
    broadcast(group, buffers[i], {.root = root, .name = fmt::format("state {}", i)});
}

}  // namespace syncopate
