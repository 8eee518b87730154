// The combiner: the sentence on memory of the caller's, with the codec's state of every gradient.
#include "syncopate/combiner.hpp"

#include <algorithm>
#include <map>

#include "base/fork.hpp"
#include "base/require.hpp"
#include "sync/codec_settings.hpp"
#include "sync/planning/agree.hpp"
#include "sync/step.hpp"

namespace syncopate {

namespace {

constexpr std::size_t kKeptPerGradient = 4;  // buckets, each of which owns memory for its payloads

const SynchronizerOptions& checked(const SynchronizerOptions& options) {
  const sync::Exchange& exchange = sync::exchange_named(options.exchange);
  base::require(exchange.updater == Updater::caller && !options.update,
                "a combiner ends with gradients, which exchange {} does not{}; allowed: allreduce, hierarchical, none",
                exchange.name, options.update ? " with an update" : "");
  base::require(options.clip_norm == 0 && !options.zero_missing,
                "clip_norm and zero_missing need all gradients of a step; a combiner sees one bucket: leave them off");
  return options;
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
      : group_(group),
        gradients_(std::move(gradients)),
        options_(checked(options)),
        exchange_(sync::exchange_named(options.exchange)),
        codecs_(sync::checked_settings(gradients_, options_)),
        share_(sync::share_of(exchange_, group)),
        cut_(gradients_, share_),
        places_(gradients_),
        inputs_{group_, gradients_, places_, codecs_, share_, cut_, options_.seed, options_.weights},
        state_(sync::state_bytes(inputs_)),
        context_{exchange_, group_, options_.algorithm, share_, cut_, state_, options_.trace},
        is_combined_(gradients_.size()) {
    if (exchange_.name != "none") agree(group_, gradients_, options_);
  }

  void combine(std::span<const PlacedGradient> bucket) try {
    process_.require("a combiner");
    if (bucket.empty()) return;
    place(bucket);
    sync::Bucket& placed = placed_bucket(bucket);
    sync::encode(placed, context_);
    sync::combine(placed, context_);
    sync::decode(placed, context_);
  } catch (const std::exception& error) {
    has_failed_ = true;
    if (exchange_.name != "none") group_.abort(error.what());
    throw;
  }

  void end_step() {
    base::require(!has_failed_, "this step failed, so that its codec state does not count; join another group");
    for (std::size_t i = 0; i < gradients_.size(); ++i)
      if (!is_combined_[i]) std::ranges::copy(state_.kept(i), state_.next(i).begin());
    state_.commit();
    is_combined_.assign(gradients_.size(), false);
    if (buckets_.size() > kKeptPerGradient * gradients_.size()) buckets_.clear();
  }
  void discard_step() { state_.undo(); }
  [[nodiscard]] SavedCodecState save() const { return state_.save(sync::text_of(codecs_), gradients_); }
  void restore(const SavedCodecState& saved) { state_.restore(saved, sync::text_of(codecs_), gradients_); }

 private:
  void place(std::span<const PlacedGradient> bucket) {
    for (const auto& [i, values] : bucket) {
      base::require(i < gradients_.size(), "there is no gradient {}; allowed: 0 to {}", i, gradients_.size() - 1);
      const Gradient& gradient = gradients_[i];
      base::require(!is_combined_[i], "gradient '{}' came twice in one step; call end_step between steps",
                    gradient.name);
      base::require(values.count == gradient.elements && values.dtype == gradient.dtype && values.data != nullptr,
                    "gradient '{}' has {} elements of type {}; its values here are {} of type {}", gradient.name,
                    gradient.elements, name_of(gradient.dtype), values.count, name_of(values.dtype));
      is_combined_[i] = true;
      places_.place(i, values);
    }
  }

  sync::Bucket& placed_bucket(std::span<const PlacedGradient> bucket) {
    std::vector<std::size_t> key;
    for (const PlacedGradient& placed : bucket) key.push_back(placed.gradient);
    const auto found = buckets_.find(key);
    if (found == buckets_.end()) return buckets_.emplace(key, sync::bucket_of(inputs_, key)).first->second;
    sync::follow(found->second, inputs_);
    return found->second;
  }

  Group& group_;
  const std::vector<Gradient> gradients_;
  const SynchronizerOptions options_;
  const sync::Exchange& exchange_;
  const std::vector<compress::Settings> codecs_;
  const sync::Share share_;
  const sync::Cut cut_;
  sync::Arena places_;
  const sync::BucketInputs inputs_;
  sync::CodecState state_;
  const sync::StepContext context_;
  std::map<std::vector<std::size_t>, sync::Bucket> buckets_;  ///< by their gradients, in the order of their values
  std::vector<bool> is_combined_;                             ///< in this step
  bool has_failed_ = false;
  const base::OwnProcess process_;
};

Combiner::Combiner(Group& group, std::vector<Gradient> gradients, const SynchronizerOptions& options)
    : impl_(std::make_unique<Impl>(group, std::move(gradients), options)) {}
Combiner::~Combiner() = default;
void Combiner::combine(std::span<const PlacedGradient> bucket) { impl_->combine(bucket); }
void Combiner::end_step() { impl_->end_step(); }
void Combiner::discard_step() { impl_->discard_step(); }
SavedCodecState Combiner::save() const { return impl_->save(); }
void Combiner::restore(const SavedCodecState& saved) { impl_->restore(saved); }

}  // namespace syncopate
