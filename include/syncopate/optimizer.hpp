// Optimizers: how gradients change weights, as rules that can be chosen by name, with their state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "syncopate/dtype.hpp"

namespace syncopate {

/// Which elements of each tensor belong to which rank: a contiguous part, maybe empty, that begins and ends at the
/// blocks of 4096 elements in which norms are summed. The parts of any consecutive tensors have about equal elements:
/// those of two ranks differ by two blocks at most.
class Shards final {
 public:
  /// `elements` of each tensor; ranks: 1 and more.
  Shards(std::span<const std::size_t> elements, int ranks);
  [[nodiscard]] Range of(std::size_t tensor, int rank) const;
  [[nodiscard]] std::size_t tensors() const noexcept { return elements_.size(); }
  [[nodiscard]] std::size_t elements(std::size_t tensor) const { return elements_[tensor]; }
  [[nodiscard]] int ranks() const noexcept { return ranks_; }
  /// Of all tensors together.
  [[nodiscard]] std::size_t elements_of_rank(int rank) const;
  /// Copies a rank's parts, tensor after tensor, out of vectors of all tensors, one after another; and back.
  void cut(std::span<const float> whole, int rank, std::span<float> parts) const;
  void join(std::span<const float> parts, int rank, std::span<float> whole) const;

 private:
  std::vector<std::size_t> elements_;
  int ranks_;
  std::vector<Range> parts_;  ///< of the first tensor rank after rank, then of the next
};

/// One tensor of weights.
struct WeightTensor {
  std::string name;  ///< unique; for messages
  Buffer weights;    ///< f32, at least one; they must outlive the optimizer, and no two overlap
  /// Without weight decay, and in layer-wise rules with a trust ratio of 1: for biases and the factors of norms.
  bool spared = false;
};

/// When an update happens.
struct UpdateStep {
  double rate = 0;         ///< the learning rate: 0 or more
  std::uint64_t step = 1;  ///< counted from 1, by which rules correct the bias of their first steps
};

/// Calls `body` once with each of 0 to count - 1, on any threads and in any order, and returns when all have ended.
using ParallelFor = std::function<void(std::size_t count, const std::function<void(std::size_t)>& body)>;

/// How ranks divide the work of an optimizer: the parallel tensor operator (PTO) of CommLib, section 5. Each computes
/// the norms of its shards, and gets those of the others. The result has the same bits as without.
struct SharedWork {
  Shards shards;
  int rank = 0;
  /// Each rank updates its shards alone, and keeps their state alone (exchange "sharded").
  bool own_shards_only = false;
  /// Gives every rank all values: those of rank r are counts[r] of them, behind those of lower ranks; this rank's are
  /// in place. Layer-wise rules call it, once per call of `update`, at the same calls on every rank.
  std::function<void(std::span<double> values, std::span<const std::size_t> counts)> gather{};
};

struct OptimizerOptions {
  std::string rule = "momentum";  ///< a name from shelf optim/rule (`syncopate info optimizer`)
  /// Hyperparameters by name; those not given have the rule's own values (docs/optimizers.md).
  std::vector<std::pair<std::string, double>> hyperparameters{};
  /// Gradients come with their momentum (FeedbackOptions::kind "momentum"): the rule adds only the weight decay's.
  bool corrected = false;
  ParallelFor parallel{};  ///< for large tensors; empty: on the calling thread. The result does not depend on it.
  std::optional<SharedWork> shared{};  ///< empty: this rank does all work
};

/// Throws Misuse: a rule that does not exist, a hyperparameter that the rule does not take or that is not allowed,
/// corrected gradients under a rule that cannot use them.
void require_allowed(const OptimizerOptions& options);
/// Whether the rule scales each tensor's update by a trust ratio of its norms (LARS, LAMB). Throws Misuse.
[[nodiscard]] bool is_layer_wise(std::string_view rule);

/// What an optimizer keeps between steps under one name: a float for each weight that it updates, tensor after tensor.
struct OptimizerState {
  std::string_view name;  ///< "velocity", "mean", "square"
  std::span<float> values;
};

/// Updates weights with their gradients by one rule. The result is the same bit for bit on every processor, for any
/// number of threads. A gradient that is not finite spoils the weights of its own tensor only: with layer-wise rules
/// any of them, else those whose gradients are not finite. Used by one thread at a time.
class Optimizer final {
 public:
  /// Throws Misuse as `require_allowed` does, and for tensors without elements, not of type f32, or of equal names.
  explicit Optimizer(std::vector<WeightTensor> tensors, const OptimizerOptions& options = {});
  ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Updates tensor `i` with its gradient, which is zero afterwards. Throws Misuse for another length, a rate that
  /// is negative or not finite, a step 0; and what SharedWork::gather throws.
  void update(std::size_t i, std::span<float> gradient, const UpdateStep& at);
  /// Updates tensors first, first + 1, …, each with its gradient: where ranks share the work, all need one gather. With
  /// `own_shards_only` gradients outside this rank's shards are neither read nor written.
  void update(std::size_t first, std::span<const std::span<float>> gradients, const UpdateStep& at);

  [[nodiscard]] std::string_view rule() const noexcept;
  /// The state by name, to be saved, or to be broadcast to ranks that update. Initially zero. Its memory is allocated
  /// by the first call of `state` or `update`: a rank that never updates has none.
  [[nodiscard]] std::vector<OptimizerState> state();
  /// Copies a saved state. Throws Misuse where it is of another rule, or has other names or lengths.
  void restore(std::string_view rule, std::span<const OptimizerState> saved);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace syncopate
