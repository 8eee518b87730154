// The synchronizer: buckets leave on the communication thread while the backward pass still fills others.
#include "syncopate/synchronizer.hpp"

#include <cstring>
#include <exception>
#include <thread>

#include "base/guarded.hpp"
#include "base/require.hpp"
#include "compress/codec.hpp"
#include "schedule/dispatch.hpp"
#include "schedule/policy.hpp"
#include "sync/agree.hpp"
#include "sync/arena.hpp"
#include "sync/optimizer.hpp"
#include "sync/step.hpp"
#include "sync/traced.hpp"
#include "syncopate/collective.hpp"

namespace syncopate {

class Synchronizer::Impl final {
 public:
  Impl(Group& group, std::vector<Gradient> gradients, const SynchronizerOptions& options);
  ~Impl();

  void ready(std::size_t i);
  void wait();
  void wait(std::size_t i);
  void accumulate(bool on) {
    progress_.with([on](Progress& progress) { progress.accumulating = on; });
  }
  [[nodiscard]] const sync::Arena& arena() const noexcept { return arena_; }
  [[nodiscard]] std::span<const BucketInfo> infos() const noexcept { return infos_; }
  [[nodiscard]] const StepStatistics& statistics() const noexcept { return statistics_; }
  [[nodiscard]] std::size_t count() const noexcept { return gradients_.size(); }

 private:
  /// Shared by the threads that report gradients, the one that waits, and the communication thread.
  struct Progress {
    std::optional<schedule::Dispatch> dispatch;
    std::vector<bool> is_done;  ///< by bucket
    std::size_t done = 0;       ///< buckets
    bool accumulating = false;
    std::exception_ptr failure;
  };

  void plan(const SynchronizerOptions& options);
  void communicate(const std::stop_token& stop);
  void exchange(std::size_t bucket, const std::stop_token& stop);
  void deliver_all(const std::stop_token& stop);
  void mark_done(std::size_t bucket);
  void require_ready(std::size_t first, std::size_t last);
  void finish_step(double waited_s);

  Group& group_;
  const std::vector<Gradient> gradients_;
  const SynchronizerOptions options_;
  const sync::Exchange& exchange_;
  const sync::Arena arena_;
  sync::Optimizer optimizer_;
  const sync::Way way_;
  std::vector<sync::Bucket> buckets_;
  std::vector<BucketInfo> infos_;
  StepStatistics statistics_;
  std::uint64_t sent_before_ = 0;
  base::Guarded<Progress> progress_;
  std::jthread communication_;  ///< runs on: communication thread; joined before the rest goes
};

Synchronizer::Impl::Impl(Group& group, std::vector<Gradient> gradients, const SynchronizerOptions& options)
    : group_(group),
      gradients_(std::move(gradients)),
      options_(options),
      exchange_(sync::exchange_named(options.exchange)),
      arena_(gradients_),
      optimizer_(exchange_, group_, options_, arena_),
      way_{exchange_, group_, options_.algorithm, optimizer_, options_.trace} {
  plan(options);
  sent_before_ = group_.traffic().sent_bytes;
  communication_ = std::jthread([this](const std::stop_token& stop) { communicate(stop); });
}

Synchronizer::Impl::~Impl() {
  communication_.request_stop();
  progress_.change([](Progress&) {});
}

void Synchronizer::Impl::plan(const SynchronizerOptions& options) {
  base::require(!gradients_.empty(), "a synchronizer needs at least one gradient");
  base::require(options.fusion_bytes > 0, "fusion_bytes is 0; allowed: 1 and more");
  base::require(options.clip_norm >= 0, "clip_norm is {}; allowed: 0 (off) and more", options.clip_norm);
  const compress::Codec& codec = compress::codec_named(options.codec);
  base::require(exchange_.accepts(codec.combine), "exchange {} cannot combine what codec {} makes", exchange_.name,
                codec.name);
  schedule::Timeline timeline;
  for (const Gradient& gradient : gradients_) {
    base::require(gradient.elements > 0, "gradient '{}' has no elements", gradient.name);
    timeline.layers.push_back({gradient.name, gradient.elements * size_of(gradient.dtype), gradient.dtype, 0});
  }
  const schedule::Policy& policy = schedule::policy_named(options.policy);
  auto partition = split_by_type(policy.partition(timeline, {options.fusion_bytes}), timeline);
  partition = sync::agree(group_, gradients_, partition);
  optimizer_.agree_on_neighbours();
  for (const schedule::Bucket& bucket : partition) {
    const Buffer span = arena_.span(bucket.first, bucket.last);
    const std::string& first = gradients_[bucket.first].name;
    const std::string name = bucket.first == bucket.last ? first : first + " .. " + gradients_[bucket.last].name;
    buckets_.push_back({.name = name,
                        .gradient = span,
                        .coder = codec.coder(span),
                        .weights = optimizer_.weights_of(bucket.first, bucket.last),
                        .first = bucket.first,
                        .last = bucket.last});
    infos_.push_back({bucket.first, bucket.last, span.bytes().size()});
  }
  progress_.with([&](Progress& progress) {
    progress.dispatch.emplace(partition, gradients_.size());
    progress.is_done.assign(partition.size(), false);
  });
}

void Synchronizer::Impl::ready(std::size_t i) {
  base::require(i < gradients_.size(), "gradient {} of {}", i, gradients_.size());
  bool is_first = true;
  progress_.change([&](Progress& progress) {
    if (!progress.accumulating && !progress.failure) is_first = progress.dispatch->ready(i);
  });
  base::require(is_first,
                "gradient '{}' became ready twice in one step; call accumulate(true) for all but the last "
                "micro-batch, and wait() between steps",
                gradients_[i].name);
}

// Runs on: the communication thread.
void Synchronizer::Impl::communicate(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::optional<std::size_t> bucket;
    progress_.wait_until(
        base::kNever,
        [&](Progress& progress) {
          if (!bucket && !progress.failure) bucket = progress.dispatch->next();
          return bucket || stop.stop_requested();
        },
        [](Progress&) {});
    if (!bucket) return;
    try {
      exchange(*bucket, stop);
    } catch (...) {
      progress_.change([](Progress& progress) { progress.failure = std::current_exception(); });
    }
  }
}

void Synchronizer::Impl::exchange(std::size_t bucket, const std::stop_token& stop) {
  sync::step(buckets_[bucket], way_);
  if (!optimizer_.ends_in_weights()) return mark_done(bucket);
  if (progress_.with([](const Progress& progress) { return progress.dispatch->all_sent(); })) deliver_all(stop);
}

/// The next forward pass needs the first layers' weights first: the reverse of the order of exchange.
void Synchronizer::Impl::deliver_all(const std::stop_token& stop) {
  optimizer_.combined();
  for (std::size_t bucket = buckets_.size(); bucket-- > 0 && !stop.stop_requested();) {
    sync::deliver(buckets_[bucket], way_);
    if (bucket == 0) optimizer_.end_step();
    mark_done(bucket);
  }
}

void Synchronizer::Impl::mark_done(std::size_t bucket) {
  progress_.change([&](Progress& progress) {
    progress.is_done[bucket] = true;
    ++progress.done;
  });
}

void Synchronizer::Impl::require_ready(std::size_t first, std::size_t last) {
  std::vector<std::size_t> missing;
  progress_.change([&](Progress& progress) {
    if (progress.failure) return;
    missing = progress.dispatch->missing();
    std::erase_if(missing, [&](std::size_t i) { return i < first || i > last; });
    if (!options_.zero_missing) return;
    for (const std::size_t i : missing) {
      const Buffer gradient = arena_.gradient(i);
      std::memset(gradient.data, 0, gradient.bytes().size());
      progress.dispatch->ready(i);
    }
  });
  if (missing.empty() || options_.zero_missing) return;
  const std::string& name = gradients_[missing.front()].name;
  const std::string message = fmt::format(
      "gradient '{}'{} never became ready on rank {}: the backward pass did not reach it (zero_missing "
      "counts such gradients as zero)",
      name, missing.size() == 1 ? "" : fmt::format(" and {} more", missing.size() - 1), group_.rank());
  if (exchange_.name != "none") group_.abort(message, name);
  throw Misuse(message, Where{group_.rank(), -1, "wait", name});
}

void Synchronizer::Impl::wait() {
  const base::SteadyClock clock;
  const base::Time begin = clock.now();
  {
    const sync::Traced span(options_.trace, "wait", "wait", 0);
    require_ready(0, gradients_.size() - 1);
    std::exception_ptr failure;
    progress_.wait_until(
        base::kNever, [&](const Progress& progress) { return progress.failure || progress.done == buckets_.size(); },
        [&](const Progress& progress) { failure = progress.failure; });
    if (failure) std::rethrow_exception(failure);
  }
  const double waited_s = base::seconds(clock.now() - begin);
  finish_step(waited_s);
}

void Synchronizer::Impl::wait(std::size_t i) {
  base::require(i < gradients_.size(), "gradient {} of {}", i, gradients_.size());
  const std::size_t bucket = progress_.with([&](Progress& progress) { return progress.dispatch->bucket_of(i); });
  if (optimizer_.ends_in_weights())  // weights leave when all gradients have been combined
    require_ready(0, gradients_.size() - 1);
  else
    require_ready(infos_[bucket].first, infos_[bucket].last);
  std::exception_ptr failure;
  progress_.wait_until(
      base::kNever, [&](const Progress& progress) { return progress.failure || progress.is_done[bucket]; },
      [&](const Progress& progress) { failure = progress.failure; });
  if (failure) std::rethrow_exception(failure);
}

void Synchronizer::Impl::finish_step(double waited_s) {
  // The norm is the same on every rank, because the averaged gradients are, bit for bit.
  if (options_.clip_norm > 0)
    statistics_.gradient_norm =
        optimizer_.ends_in_weights() ? optimizer_.norm() : sync::clip(arena_, options_.clip_norm);
  const std::uint64_t sent = group_.traffic().sent_bytes;
  statistics_.wire_bytes = sent - sent_before_;
  statistics_.wait_s = waited_s;
  sent_before_ = sent;
  progress_.with([](Progress& progress) {
    progress.dispatch->restart();
    progress.is_done.assign(progress.is_done.size(), false);
    progress.done = 0;
  });
}

Synchronizer::Synchronizer(Group& group, std::vector<Gradient> gradients, const SynchronizerOptions& options)
    : impl_(std::make_unique<Impl>(group, std::move(gradients), options)) {}
Synchronizer::~Synchronizer() = default;

Buffer Synchronizer::gradient(std::size_t i) const {
  base::require(i < impl_->count(), "gradient {} of {}", i, impl_->count());
  return impl_->arena().gradient(i);
}
void Synchronizer::ready(std::size_t i) { impl_->ready(i); }
void Synchronizer::wait() { impl_->wait(); }
void Synchronizer::wait(std::size_t i) { impl_->wait(i); }
void Synchronizer::accumulate(bool on) { impl_->accumulate(on); }
std::span<const BucketInfo> Synchronizer::buckets() const noexcept { return impl_->infos(); }
StepStatistics Synchronizer::statistics() const noexcept { return impl_->statistics(); }

void broadcast_all(Group& group, std::span<const Buffer> buffers, int root) {
  for (std::size_t i = 0; i < buffers.size(); ++i)
    broadcast(group, buffers[i], {.root = root, .name = fmt::format("state {}", i)});
}

}  // namespace syncopate
