// The combiner: takes buckets that the caller has formed, in the caller's memory, through the flow of a step.
#include "syncopate/combiner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <system_error>

#include "base/clock.hpp"
#include "base/env.hpp"
#include "base/fork.hpp"
#include "base/require.hpp"
#include "sync/flow.hpp"
#include "sync/pipeline.hpp"
#include "sync/planning/proposal.hpp"
#include "syncopate/error.hpp"

namespace syncopate {

namespace {

/// Those of the flow that a combiner shares with a synchronizer. Throws Misuse for an exchange that ends with weights.
SynchronizerOptions flow_options(const CombinerOptions& options) {
  const sync::Exchange& exchange = sync::exchange_named(options.exchange);
  base::require(exchange.updater() == Updater::caller,
                "a combiner ends with gradients, which exchange {} does not; allowed: allreduce, hierarchical, none",
                exchange.name);
  SynchronizerOptions flow{.catalogue = options.catalogue,
                           .coding = options.coding,
                           .exchange = options.exchange,
                           .algorithm = options.algorithm};
  flow.trace = options.trace;
  flow.weights = options.weights;
  return flow;
}

/// Buckets are the caller's: all gradients in one stand for them where the ranks compare what they were given.
void agree(Group& group, const std::vector<Gradient>& gradients, const SynchronizerOptions& options) {
  const sync::planning::AgreedPlan plan{{.policy = "single"}, {{0, gradients.size() - 1}}};
  static_cast<void>(sync::planning::agree(group, gradients, options, plan));
}

}  // namespace

class Combiner::Impl final {
 public:
  Impl(Group& group, std::vector<Gradient> gradients, const SynchronizerOptions& options)
      : flow_(group, gradients, options, sync::planning::compared_settings(group, gradients, options),
              sync::GradientMemory::caller),
        is_combined_(gradients.size()),
        codes_apart_(codes() && !narrows()),
        pipeline_({.encode = [this](auto& started) { encode(started); },
                   .exchange = [this](auto& started) { exchange(started); },
                   .decode = [this](auto& started) { decode(started); },
                   .end =
                       [](auto& started) {
                         if (started.calls.ended) started.calls.ended(started.combined);
                       },
                   .failed = [this](const auto& error) { fail(error); }},
                  codes_apart_ && flow_.options.code_ahead && base::processors() > 1) {
    if (communicates()) agree(group, gradients, options);
  }

  void combine(std::span<const PlacedGradient> bucket) {
    wait();
    sync::StartedBucket started{.gradients = {bucket.begin(), bucket.end()}, .calls = {}};
    in_step([&] {
      encode(started);
      exchange(started);
      decode(started);
    });
  }
  void start(std::vector<PlacedGradient> bucket, BucketCalls calls) try {
    process_.require("a combiner");
    pipeline_.add(std::make_unique<sync::StartedBucket>(sync::StartedBucket{std::move(bucket), std::move(calls)}));
  } catch (const std::system_error& error) {
    const std::string what =
        fmt::format("rank {} cannot create a thread of the combiner: {}; raise the limit of threads",
                    flow_.group.rank(), error.what());
    fail(std::make_exception_ptr(SystemFailure(what, {.rank = flow_.group.rank()})));
    throw SystemFailure(what, {.rank = flow_.group.rank()});
  }
  /// Returns whether all have ended, which they have without a deadline.
  bool wait(base::Time deadline = base::kNever) {
    process_.require("a combiner");
    base::require(!is_own_thread(),
                  "a call of a bucket uses its combiner; allowed there: start; other functions on another thread");
    return pipeline_.wait(deadline);
  }
  /// Calls of buckets may still use the combiner.
  void end() { pipeline_.wait(base::kNever); }
  [[nodiscard]] bool is_own_thread() const noexcept { return pipeline_.is_own_thread(); }
  /// A forked child has none of the threads.
  [[nodiscard]] bool is_inherited() const noexcept { return process_.is_inherited(); }

  [[nodiscard]] std::optional<DType> casts_to() const noexcept {
    if (narrows()) return std::nullopt;
    const std::optional<DType> type = flow_.codecs.front().codec->casts_to;
    const bool is_all =
        std::ranges::all_of(flow_.codecs, [&](const auto& each) { return each.codec->casts_to == type; });
    return is_all ? type : std::nullopt;
  }

  void end_step() {
    base::require(!has_failed_, "this step failed, and its codec state was discarded; join another group");
    for (std::size_t i = 0; i < is_combined_.size(); ++i)
      if (!is_combined_[i]) std::ranges::copy(flow_.state.kept(i), flow_.state.next(i).begin());
    flow_.end_step();
    is_combined_.assign(is_combined_.size(), false);
    if (buckets_.size() > sync::kKeptPerGradient * is_combined_.size()) buckets_.clear();
  }
  void discard_step() { flow_.state.undo(); }
  [[nodiscard]] SavedCodecState save() const { return flow_.save(); }
  void restore(const SavedCodecState& saved) { flow_.restore(saved); }

 private:
  [[nodiscard]] bool communicates() const { return flow_.exchange.name != "none"; }
  /// Such an exchange communicates in every phase, so that all of them are one here.
  [[nodiscard]] bool narrows() const noexcept { return flow_.exchange.narrowing.has_value(); }
  [[nodiscard]] bool codes() const noexcept {
    return std::ranges::any_of(flow_.codecs, [](const auto& each) { return each.codec->name != "none"; });
  }

  // The phases, on the pipeline's threads or the caller's.

  void encode(sync::StartedBucket& started) {
    if (started.calls.arrive) started.calls.arrive();
    if (started.gradients.empty()) return;
    place(started.gradients);
    started.bucket = &placed_bucket(started.gradients);
    if (codes_apart_) timed(started, "encode", [&] { sync::prepare(*started.bucket, flow_.context); });
  }
  void exchange(sync::StartedBucket& started) {
    if (started.bucket == nullptr) return;
    timed(started, "exchange", [&] {
      if (codes_apart_)
        sync::combine(*started.bucket, flow_.context);
      else
        sync::run_bucket(*started.bucket, flow_.context);
    });
  }
  void decode(sync::StartedBucket& started) {
    if (codes_apart_ && started.bucket != nullptr)
      timed(started, "decode", [&] { sync::complete(*started.bucket, flow_.context); });
    if (started.calls.ends_step) end_step();
  }
  template <class Body>
  static void timed(sync::StartedBucket& started, const char* phase, const Body& body) {
    const auto now_s = [] { return base::seconds(base::SteadyClock().now().time_since_epoch()); };
    const double begin_s = now_s();
    body();
    started.combined.phases.push_back({phase, begin_s, now_s()});
  }

  template <class Body>
  void in_step(const Body& body) try {
    body();
  } catch (...) {
    fail(std::current_exception());
    throw;
  }
  /// The other ranks wait for this rank's part of a bucket and shall learn why it does not come.
  void fail(const std::exception_ptr& failure) noexcept {
    has_failed_ = true;
    if (!communicates()) return;
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      flow_.group.abort(error.what());
    } catch (...) {
      flow_.group.abort("a bucket was not combined");
    }
  }

  void place(std::span<const PlacedGradient> bucket) {
    for (const auto& [i, values] : bucket) {
      base::require(i < is_combined_.size(), "there is no gradient {}; allowed: 0 to {}", i, is_combined_.size() - 1);
      const Gradient& gradient = flow_.gradients[i];
      base::require(!is_combined_[i], "gradient '{}' came twice in one step; call end_step between steps",
                    gradient.name);
      const bool is_cast = gradient.dtype == DType::f32 && casts_to() == values.dtype;
      base::require(
          values.count == gradient.elements && (values.dtype == gradient.dtype || is_cast) && values.data != nullptr,
          "gradient '{}' has {} elements of type {}; its values here are {} of type {}", gradient.name,
          gradient.elements, name_of(gradient.dtype), values.count, name_of(values.dtype));
      is_combined_[i] = true;
      flow_.arena.place(i, values);
    }
  }

  sync::Bucket& placed_bucket(std::span<const PlacedGradient> bucket) {
    std::vector<std::size_t> key;
    for (const PlacedGradient& placed : bucket) key.push_back(placed.gradient);
    const auto found = buckets_.find(key);
    if (found == buckets_.end()) return buckets_.emplace(key, sync::bucket_of(flow_.inputs, key)).first->second;
    sync::follow(found->second, flow_.inputs);
    return found->second;
  }

  sync::Flow flow_;
  // Used by the thread that encodes, and by the caller's while no bucket is under way.
  std::map<std::vector<std::size_t>, sync::Bucket> buckets_;  ///< by their gradients, in the order of their values
  std::vector<bool> is_combined_;                             ///< in this step
  std::atomic<bool> has_failed_ = false;
  const bool codes_apart_;  ///< encoding and decoding need no other rank
  const base::OwnProcess process_;
  sync::Pipeline pipeline_;  ///< last: its threads use the other members
};

Combiner::Combiner(Group& group, std::vector<Gradient> gradients, const CombinerOptions& options) try
    : impl_(std::make_unique<Impl>(group, std::move(gradients), flow_options(options))) {
} catch (const Misuse& misuse) {
  sync::planning::refuse(group, options.exchange, misuse);
}
Combiner::~Combiner() {
  // In a forked child locks may be held and threads awaited that it does not have.
  if (impl_->is_inherited())
    static_cast<void>(impl_.release());
  else
    impl_->end();
}
void Combiner::combine(std::span<const PlacedGradient> bucket) { impl_->combine(bucket); }
void Combiner::start(std::vector<PlacedGradient> bucket, BucketCalls calls) {
  impl_->start(std::move(bucket), std::move(calls));
}
void Combiner::wait() const { impl_->wait(); }
bool Combiner::wait_for(std::chrono::milliseconds bound) const {
  return impl_->wait(base::SteadyClock().now() + std::max(bound, std::chrono::milliseconds(0)));
}
bool Combiner::is_own_thread() const noexcept { return impl_->is_own_thread(); }
std::optional<DType> Combiner::casts_to() const noexcept { return impl_->casts_to(); }
void Combiner::end_step() {
  impl_->wait();
  impl_->end_step();
}
void Combiner::discard_step() {
  impl_->wait();
  impl_->discard_step();
}
SavedCodecState Combiner::save() const {
  impl_->wait();
  return impl_->save();
}
void Combiner::restore(const SavedCodecState& saved) {
  impl_->wait();
  impl_->restore(saved);
}

}  // namespace syncopate
