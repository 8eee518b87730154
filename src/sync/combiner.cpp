// The combiner: takes buckets that the caller has formed, in the caller's memory, through the flow of a step.
#include "syncopate/combiner.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>

#include "base/env.hpp"
#include "base/fork.hpp"
#include "base/guarded.hpp"
#include "base/require.hpp"
#include "sync/flow.hpp"
#include "sync/planning/proposal.hpp"

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
        is_combined_(gradients.size()) {
    if (communicates()) agree(group, gradients, options);
  }

  void combine(std::span<const PlacedGradient> bucket) {
    if (bucket.empty()) return;
    encode(bucket);
    exchange();
    decode();
  }

  void encode(std::span<const PlacedGradient> bucket) {
    in_step([&] {
      process_.require("a combiner");
      base::require(!bucket.empty(), "a bucket is empty; allowed: one gradient or more");
      place(bucket);
      sync::Bucket& placed = placed_bucket(bucket);
      if (!narrows()) sync::prepare(placed, flow_.context);
      underway_.with([&](Underway& underway) { underway.encoded.push_back(&placed); });
    });
  }
  void exchange() {
    in_step([&] {
      sync::Bucket& bucket = oldest(&Underway::encoded, "encoded");
      if (narrows())
        sync::run_bucket(bucket, flow_.context);
      else
        sync::combine(bucket, flow_.context);
      underway_.with([&](Underway& underway) { underway.exchanged.push_back(&bucket); });
    });
  }
  void decode() {
    in_step([&] {
      sync::Bucket& bucket = oldest(&Underway::exchanged, "exchanged");
      if (!narrows()) sync::complete(bucket, flow_.context);
    });
  }
  [[nodiscard]] std::optional<DType> casts_to() const noexcept {
    if (narrows()) return std::nullopt;
    const std::optional<DType> type = flow_.codecs.front().codec->casts_to;
    const bool is_all =
        std::ranges::all_of(flow_.codecs, [&](const auto& each) { return each.codec->casts_to == type; });
    return is_all ? type : std::nullopt;
  }
  [[nodiscard]] bool codes_ahead() const noexcept {
    const bool codes = std::ranges::any_of(flow_.codecs, [](const auto& each) { return each.codec->name != "none"; });
    return flow_.options.code_ahead && codes && !narrows() && base::processors() > 1;
  }

  void end_step() {
    base::require(!has_failed_, "this step failed, and its codec state was discarded; join another group");
    base::require(underway_.with([](const Underway& each) { return each.encoded.empty() && each.exchanged.empty(); }),
                  "a bucket of this step is not decoded yet; exchange and decode it first");
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
  /// Buckets between two phases, in the order of `encode`.
  struct Underway {
    std::deque<sync::Bucket*> encoded, exchanged;
  };

  [[nodiscard]] bool communicates() const { return flow_.exchange.name != "none"; }
  /// Such an exchange communicates in every phase, so that all of them are the second one here.
  [[nodiscard]] bool narrows() const noexcept { return flow_.exchange.narrowing.has_value(); }

  /// The other ranks wait for this rank's part of a bucket and shall learn why it does not come.
  template <class Body>
  void in_step(const Body& body) try {
    body();
  } catch (const std::exception& error) {
    has_failed_ = true;
    if (communicates()) flow_.group.abort(error.what());
    throw;
  }

  sync::Bucket& oldest(std::deque<sync::Bucket*> Underway::*queue, const char* phase) {
    return underway_.with([&](Underway& underway) -> sync::Bucket& {
      auto& waiting = underway.*queue;
      base::require(!waiting.empty(), "no bucket is {}; call the phases of a bucket in order", phase);
      sync::Bucket& bucket = *waiting.front();
      waiting.pop_front();
      return bucket;
    });
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
  std::map<std::vector<std::size_t>, sync::Bucket> buckets_;  ///< by their gradients, in the order of their values
  std::vector<bool> is_combined_;                             ///< in this step
  base::Guarded<Underway> underway_;
  std::atomic<bool> has_failed_ = false;
  const base::OwnProcess process_;
};

Combiner::Combiner(Group& group, std::vector<Gradient> gradients, const CombinerOptions& options) try
    : impl_(std::make_unique<Impl>(group, std::move(gradients), flow_options(options))) {
} catch (const Misuse& misuse) {
  sync::planning::refuse(group, options.exchange, misuse);
}
Combiner::~Combiner() = default;
void Combiner::combine(std::span<const PlacedGradient> bucket) { impl_->combine(bucket); }
void Combiner::encode(std::span<const PlacedGradient> bucket) { impl_->encode(bucket); }
void Combiner::exchange() { impl_->exchange(); }
void Combiner::decode() { impl_->decode(); }
std::optional<DType> Combiner::casts_to() const noexcept { return impl_->casts_to(); }
bool Combiner::codes_ahead() const noexcept { return impl_->codes_ahead(); }
void Combiner::end_step() { impl_->end_step(); }
void Combiner::discard_step() { impl_->discard_step(); }
SavedCodecState Combiner::save() const { return impl_->save(); }
void Combiner::restore(const SavedCodecState& saved) { impl_->restore(saved); }

}  // namespace syncopate
