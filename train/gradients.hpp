// The gradients of a network: in one arena, reported by the backward pass, exchanged while it still runs.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "network.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate::train {

/// Ties a network's gradients to a Synchronizer, or, for the exchange "none", to memory of this rank alone.
/// Used from one thread, the one that runs the backward pass.
class Gradients final {
 public:
  /// `options.trace` must be given; `network` must outlive this.
  Gradients(Group& group, const Network& network, const SynchronizerOptions& options);
  ~Gradients();
  Gradients(const Gradients&) = delete;
  Gradients& operator=(const Gradients&) = delete;

  /// Before the backward pass of a micro-batch; gradients of those before the last only add up.
  void begin_backward(bool last_micro_batch);
  /// Instead of the last backward pass, when no sample is left for it: what has been added up (or zero) is all.
  void without_backward();

  /// Hands gradients [first, last] to `use` as soon as they hold the average, until all have been. Returns the seconds
  /// that were spent waiting for other ranks. Clipping needs the norm of all and therefore waits for all first.
  using Use = std::function<void(std::size_t first, std::size_t last)>;
  double finish(const Use& use);

  [[nodiscard]] std::span<float> values(std::size_t i) const;
  [[nodiscard]] std::size_t count() const noexcept { return gradients_.size(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return 4 * elements_; }
  [[nodiscard]] std::vector<BucketInfo> buckets() const;
  [[nodiscard]] std::uint64_t wire_bytes() const;  ///< sent by this rank in the last step

 private:
  class Hook;
  void ready(std::size_t i);
  void finish_alone();
  double wait_for(const BucketInfo& bucket);
  void trace_backward(std::size_t i);

  const Network& network_;
  SynchronizerOptions options_;
  std::vector<Gradient> gradients_;
  std::size_t elements_ = 0;
  std::unique_ptr<Synchronizer> synchronizer_;  ///< null for the exchange "none"
  std::vector<float> own_;                      ///< the arena where there is no synchronizer
  std::vector<std::size_t> offsets_;            ///< into `own_`
  std::vector<bool> arrived_;                   ///< gradients reported ready in this step
  std::size_t arrivals_ = 0;
  bool last_micro_batch_ = true;
  double backward_since_s_ = 0;  ///< when the backward pass began to work on the next gradient; on the trace's clock
};

}  // namespace syncopate::train
