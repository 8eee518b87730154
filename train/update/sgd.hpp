// Stochastic gradient descent with momentum, on one contiguous memory of parameters.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <span>
#include <vector>

namespace syncopate::train {

struct SgdOptions {
  double learning_rate = 0.1;
  double momentum = 0.9;
  double weight_decay = 0;
  bool nesterov = false;
  bool corrected = false;  ///< gradients come with their momentum: only the weight decay's is added here
  std::uint64_t warmup = 0;
  std::vector<std::uint64_t> milestones;
  double decay = 0.1;
};

/// The rate of step `step` (counted from 0): lr * min(1, (step + 1) / warmup) * decay^(milestones <= step).
[[nodiscard]] double learning_rate_at(const SgdOptions& options, std::uint64_t step);

class Sgd final {
 public:
  /// `parameters`: f32, one dimension, contiguous; updated in place. A rank that never updates keeps no velocity.
  Sgd(at::Tensor parameters, SgdOptions options, bool updates = true);

  void begin_step(std::uint64_t step) { rate_ = learning_rate_at(options_, step); }
  /// Updates the parameters from `first` on with their gradients, which are zero afterwards (one pass over the memory):
  ///   g += weight_decay p;  v = momentum v + g;  p -= rate (nesterov ? g + momentum v : v)
  /// Corrected: the same with weight_decay p in the place of g, and g, which has its momentum, added to the step.

  void update(std::size_t first, std::span<float> gradients);

  [[nodiscard]] const at::Tensor& velocity() const noexcept {
    return velocity_;
  }  ///< v, as long as the parameters, or empty

 private:
  SgdOptions options_;
  at::Tensor parameters_, velocity_;
  double rate_ = 0;
};

}  // namespace syncopate::train
