// The gradients of a network: in one arena, reported by the backward pass, exchanged while it still runs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "network/network.hpp"
#include "syncopate/synchronizer.hpp"
#include "update/served.hpp"

namespace syncopate::train {

/// The gradients of its parameters, for a synchronizer.
[[nodiscard]] std::vector<Gradient> gradients_of(const Network& network);

/// Ties a network to a Synchronizer, or, for the exchange "none" and where servers hold the weights, its gradients to
/// memory of this rank alone.
/// Where the exchange ends in weights, a step goes on into the next forward pass: each layer then waits for its own
/// weights, through the network's `before_use`. Used from one thread, the one that runs both passes.
class Gradients final {
 public:
  /// `options` without `weights`, which are the network's; `options.trace` must be given. `serial`: buckets leave after
  /// the backward pass, weights arrive before the forward pass. `network` must outlive this.
  struct Manner {
    bool serial = false;
    bool together = false;                    ///< averages are used when all have arrived, not bucket by bucket
    std::unique_ptr<ServedWeights> served{};  ///< instead of a synchronizer, where the exchange is by servers
    std::vector<std::string> codecs{};        ///< of every gradient; empty: that of the options
  };
  Gradients(Group& group, const Network& network, SynchronizerOptions options, Manner manner);
  ~Gradients();
  Gradients(const Gradients&) = delete;
  Gradients& operator=(const Gradients&) = delete;

  /// Before the backward pass of a micro-batch; gradients of those before the last only add up.
  void begin_backward(bool last_micro_batch);
  /// Instead of the last backward pass, when no sample is left for it: what has been added up (or zero) is all.
  void without_backward();

  /// The backward passes of a step are done. Where the exchange ends in gradients: hands gradients [first, last] to
  /// `use` as soon as they hold the average, until all have been. Clipping needs the norm of all and waits for all.
  using Use = std::function<void(std::size_t first, std::size_t last)>;
  void finish(const Use& use);
  /// The rate of this step's updates, for servers; before its gradients come.
  void use_rate(double rate) noexcept { rate_ = rate; }
  /// Where servers hold the weights (else null): what they keep, between steps.
  [[nodiscard]] ServedWeights* served() const noexcept { return served_.get(); }
  /// After the last step, where servers hold the weights: everybody's updates of as many steps are in them.
  Served finish_served();
  /// Waits for the weights that are still on their way. Before it this rank must start no operation of the group.
  void settle();

  /// Seconds spent waiting for other ranks since the last call, with spans "wait" in the trace.
  [[nodiscard]] double take_waited_s();
  [[nodiscard]] std::span<float> values(std::size_t i) const;
  /// From now on each gradient of this rank's own is looked at (`looks_finite`) before it is exchanged. `found` gets
  /// the name of the first that is not finite, once, and may throw: nothing of it has left then. Called by the thread
  /// of the backward pass.
  void watch(std::function<void(const std::string& gradient)> found) { found_not_finite_ = std::move(found); }
  [[nodiscard]] std::size_t count() const noexcept { return gradients_.size(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return 4 * elements_; }
  [[nodiscard]] std::vector<BucketInfo> buckets() const;
  [[nodiscard]] std::uint64_t wire_bytes() const noexcept { return wire_bytes_; }  ///< sent up to the last `finish`
  /// What the codec keeps between steps; nothing where neither a synchronizer nor servers are. `restore` throws Misuse.
  [[nodiscard]] SavedCodecState codec_state() const {
    if (served_) return served_->codec_state();
    return synchronizer_ ? synchronizer_->save() : SavedCodecState{};
  }
  void restore(const SavedCodecState& state) { served_ ? served_->restore(state) : synchronizer_->restore(state); }
  /// Of the last step that ended; nothing where there is no synchronizer.
  [[nodiscard]] StepStatistics statistics() const {
    return synchronizer_ ? synchronizer_->statistics() : StepStatistics{};
  }

 private:
  class Hook;
  void ready(std::size_t i);
  void clip_own();
  void hand_over();
  void finish_in_gradients(const Use& use, bool all_ready);
  /// One wait of the synchronizer's for a bucket, timed and traced.
  template <class Wait>
  std::optional<BucketInfo> wait_for(const Wait& wait);
  void wait_for_weights(std::size_t parameter);
  [[nodiscard]] BucketInfo weights_of(std::size_t parameter);
  [[nodiscard]] std::string bucket_name(const BucketInfo& bucket) const;
  void trace_backward(std::size_t i);

  Group& group_;
  const Network& network_;
  SynchronizerOptions options_;
  const bool together_, serial_, ends_in_weights_;
  const std::unique_ptr<ServedWeights> served_;
  double rate_ = 0;
  std::vector<Gradient> gradients_;
  std::size_t elements_ = 0;
  std::unique_ptr<Synchronizer> synchronizer_;  ///< null for the exchange "none"
  std::vector<float> own_;                      ///< the arena where there is no synchronizer
  std::vector<std::size_t> offsets_;            ///< into `own_`
  std::vector<bool> arrived_;                   ///< gradients reported ready in this step
  std::size_t arrivals_ = 0;
  bool last_micro_batch_ = true;
  bool weights_under_way_ = false;
  std::size_t weights_here_ = 0;  ///< of so many parameters, in forward order, while weights are under way
  double waited_s_ = 0;
  std::function<void(const std::string&)> found_not_finite_;
  std::uint64_t sent_before_ = 0, wire_bytes_ = 0;
  double backward_since_s_ = 0;  ///< when the backward pass began to work on the next gradient; on the trace's clock
};

}  // namespace syncopate::train
