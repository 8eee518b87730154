// The combiner: takes buckets that the caller has formed, in the caller's memory, through the flow of a step.
#include "syncopate/combiner.hpp"

#include <algorithm>
#include <map>

#include "base/fork.hpp"
#include "base/require.hpp"
#include "sync/flow.hpp"
#include "sync/planning/proposal.hpp"

namespace syncopate {

namespace {

const SynchronizerOptions& checked(const SynchronizerOptions& options) {
  const sync::Exchange& exchange = sync::exchange_named(options.exchange);
  base::require(exchange.updater() == Updater::caller && !options.update,
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
      : flow_(group, gradients, options, sync::planning::compared_settings(group, gradients, checked(options)),
              sync::GradientMemory::caller),
        is_combined_(gradients.size()) {
    if (communicates()) agree(group, gradients, options);
  }

  void combine(std::span<const PlacedGradient> bucket) try {
    process_.require("a combiner");
    if (bucket.empty()) return;
    place(bucket);
    sync::run_bucket(placed_bucket(bucket), flow_.context);
  } catch (const std::exception& error) {
    has_failed_ = true;
    if (communicates()) flow_.group.abort(error.what());
    throw;
  }

  void end_step() {
    base::require(!has_failed_, "this step failed, and its codec state was discarded; join another group");
    for (std::size_t i = 0; i < is_combined_.size(); ++i)
      if (!is_combined_[i]) std::ranges::copy(flow_.state.kept(i), flow_.state.next(i).begin());
    flow_.state.commit();
    is_combined_.assign(is_combined_.size(), false);
    if (buckets_.size() > sync::kKeptPerGradient * is_combined_.size()) buckets_.clear();
  }
  void discard_step() { flow_.state.undo(); }
  [[nodiscard]] SavedCodecState save() const { return flow_.save(); }
  void restore(const SavedCodecState& saved) { flow_.restore(saved); }

 private:
  [[nodiscard]] bool communicates() const { return flow_.exchange.name != "none"; }

  void place(std::span<const PlacedGradient> bucket) {
    for (const auto& [i, values] : bucket) {
      base::require(i < is_combined_.size(), "there is no gradient {}; allowed: 0 to {}", i, is_combined_.size() - 1);
      const Gradient& gradient = flow_.gradients[i];
      base::require(!is_combined_[i], "gradient '{}' came twice in one step; call end_step between steps",
                    gradient.name);
      base::require(values.count == gradient.elements && values.dtype == gradient.dtype && values.data != nullptr,
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
