// The gradients of a network: in one arena, reported by the backward pass, and exchanged during it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "network/network.hpp"
#include "record/rows.hpp"
#include "syncopate/synchronizer.hpp"
#include "update/served.hpp"

namespace syncopate::train {

/// The gradients of the network's parameters, for a synchronizer.
[[nodiscard]] std::vector<Gradient> gradients_of(const Network& network);

/// Connects a network to a Synchronizer. With the exchange "none", and with servers, gradients are in memory of this
/// rank only. Where the exchange ends in weights, a step continues during the next forward pass: each layer waits for
/// its own weights through the network's `before_use`. Used by one thread, which runs both passes.
class Gradients final {
 public:
  /// `options` lack `weights`, which are the network's; `options.trace` is required. `serial`: buckets leave after the
  /// backward pass, and weights arrive before the forward pass. `network` must outlive this.
  struct Mode {
    bool serial = false;
    bool together = false;                    ///< averages are used when all have arrived, not bucket by bucket
    std::unique_ptr<ServedWeights> served{};  ///< replaces the synchronizer if the exchange is by servers
    std::vector<std::string> codecs{};        ///< one per gradient; empty: that of the options
  };
  Gradients(Group& group, const Network& network, SynchronizerOptions options, Mode mode);
  ~Gradients();
  Gradients(const Gradients&) = delete;
  Gradients& operator=(const Gradients&) = delete;

  /// Called before the backward pass of a micro-batch; gradients of all but the last are only accumulated.
  void begin_backward(bool last_micro_batch);
  /// Called instead of the last backward pass if no sample is left: the accumulated gradients (or zero) are complete.
  void without_backward();

  /// Called after the backward passes of a step. Where the exchange ends in gradients: passes gradients [first, last]
  /// to `use` as soon as they hold the average, until all have been passed. Clipping needs the norm of all gradients
  /// and waits for them.
  using Use = std::function<void(std::size_t first, std::size_t last)>;
  void finish(const Use& use);
  /// Sets the rate of this step's updates on servers; called before its gradients are ready.
  void use_rate(double rate) noexcept { rate_ = rate; }
  /// The servers' weights, between steps; null without servers.
  [[nodiscard]] ServedWeights* served() const noexcept { return served_.get(); }
  /// The servers' weights for the next part; afterwards this can only be destroyed.
  [[nodiscard]] std::unique_ptr<ServedWeights> take_served() noexcept { return std::move(served_); }
  /// Ends served training after the last step: the servers then have the updates of every worker for that number of
  /// steps.
  Served finish_served();
  /// Waits for the weights under way. Until it returns, this rank must start no operation of the group.
  void finish_exchange();

  /// Seconds spent waiting for other ranks since the last call; the trace has them as spans "wait".
  [[nodiscard]] double take_waited_s();
  [[nodiscard]] std::span<float> values(std::size_t i) const;
  /// From now on each gradient of this rank is tested (`looks_finite`) before it is exchanged. `found` is called once,
  /// with the name of the first that is not finite. It may throw, and then no part of that gradient has been sent.
  /// Called on the thread of the backward pass.
  void watch(std::function<void(const std::string& gradient)> found) { found_not_finite_ = std::move(found); }
  [[nodiscard]] std::size_t count() const noexcept { return gradients_.size(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return 4 * elements_; }
  [[nodiscard]] std::vector<BucketInfo> buckets() const;
  [[nodiscard]] std::uint64_t wire_bytes() const noexcept {
    return wire_bytes_;
  }  ///< in all steps up to the last `finish`
  /// State of the codec between steps; empty with neither a synchronizer nor servers. `restore` throws Misuse.
  [[nodiscard]] SavedCodecState codec_state() const {
    if (served_) return served_->codec_state();
    return synchronizer_ ? synchronizer_->save() : SavedCodecState{};
  }
  void restore(const SavedCodecState& state) { served_ ? served_->restore(state) : synchronizer_->restore(state); }
  /// Sets the step of codecs before their first step. It counts the steps of the whole training, so random draws and
  /// warm-up do not depend on where a run was interrupted or a part began.
  void begin_codecs(std::uint64_t step);
  /// By gradient, since the last call; only of codecs that select elements.
  [[nodiscard]] std::vector<SentRow> take_sent();
  /// Statistics of the last completed step; empty without a synchronizer.
  [[nodiscard]] StepStatistics statistics() const {
    return synchronizer_ ? synchronizer_->statistics() : StepStatistics{};
  }

 private:
  class Hook;
  void ready(std::size_t i);
  void clip_own();
  void hand_over();
  void finish_in_gradients(const Use& use, bool all_ready);
  /// Waits for one bucket of the synchronizer; timed and traced.
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
  std::unique_ptr<ServedWeights> served_;
  double rate_ = 0;
  std::vector<Gradient> gradients_;
  std::size_t elements_ = 0;
  std::unique_ptr<Synchronizer> synchronizer_;  ///< null for the exchange "none"
  std::vector<float> own_;                      ///< the arena if there is no synchronizer
  std::vector<std::size_t> offsets_;            ///< into `own_`
  std::vector<bool> arrived_;                   ///< gradients reported ready in this step
  std::size_t arrivals_ = 0;
  bool last_micro_batch_ = true;
  bool weights_under_way_ = false;
  std::size_t weights_here_ = 0;  ///< number of parameters, in forward order, whose weights have arrived
  double waited_s_ = 0;
  std::function<void(const std::string&)> found_not_finite_;
  std::uint64_t sent_before_ = 0, wire_bytes_ = 0;
  std::vector<SentShare> shares_before_;
  double backward_since_s_ = 0;  ///< time on the trace's clock at which the backward pass began the next gradient
};

}  // namespace syncopate::train
