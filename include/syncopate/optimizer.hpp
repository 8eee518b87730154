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

#include "syncopate/catalogue.hpp"
#include "syncopate/dtype.hpp"
#include "syncopate/shared_work.hpp"

namespace syncopate {

/// Assigns the elements of each tensor to ranks. A rank's shard of a tensor is contiguous and may be empty. It begins
/// and ends at boundaries of the blocks of 4096 elements in which norms are summed. Over any consecutive tensors the
/// shards of two ranks differ by at most two blocks.
class Shards final {
 public:
  /// `elements`: one count per tensor. `ranks`: at least 1.
  Shards(std::span<const std::size_t> elements, int ranks);
  [[nodiscard]] Range of(std::size_t tensor, int rank) const;
  [[nodiscard]] std::size_t tensors() const noexcept { return elements_.size(); }
  [[nodiscard]] std::size_t elements(std::size_t tensor) const { return elements_[tensor]; }
  [[nodiscard]] int ranks() const noexcept { return ranks_; }
  /// Elements of this rank's shards of all tensors.
  [[nodiscard]] std::size_t elements_of_rank(int rank) const;
  /// `whole` holds all tensors one after another, `parts` the rank's shards one after another. `cut` copies from
  /// `whole` to `parts`, `join` copies back.
  void cut(std::span<const float> whole, int rank, std::span<float> parts) const;
  void join(std::span<const float> parts, int rank, std::span<float> whole) const;

 private:
  std::vector<std::size_t> elements_;
  int ranks_;
  std::vector<Range> parts_;  ///< the first tensor's shards by rank, then those of the next
};

/// One tensor of weights.
struct WeightTensor {
  std::string name;  ///< unique; appears in messages
  Buffer weights;    ///< f32, at least one element; must outlive the optimizer and not overlap another tensor
  /// No weight decay, and a trust ratio of 1 in layer-wise rules: for biases and the scales of normalisation layers.
  bool spared = false;
};

/// The learning rate and the step number of an update.
struct UpdateStep {
  double rate = 0;         ///< learning rate, at least 0
  std::uint64_t step = 1;  ///< counted from 1; rules correct the bias of the first steps with it
};

/// Calls body(0) to body(count - 1) once each, on any threads and in any order, and returns when all have returned.
using ParallelFor = std::function<void(std::size_t count, const std::function<void(std::size_t)>& body)>;

/// How ranks divide the work of an optimizer. Each rank computes the norms of its shards and receives those of the
/// others, as SharedWork does with any function. The result is bitwise equal to that of a rank that does all the work.
struct SharedUpdate {
  Shards shards;
  int rank = 0;
  /// Each rank updates only its shards and keeps only their state (exchange "sharded").
  bool own_shards_only = false;
  /// Layer-wise rules call it once per call of `update`, in the same calls on every rank.
  GatherValues gather{};
};

struct OptimizerOptions {
  std::string rule = "momentum";  ///< a name from shelf optim/rule (`syncopate info optimizer`)
  /// Hyperparameters by name; the others have the rule's defaults (docs/optimizers.md).
  std::vector<std::pair<std::string, double>> hyperparameters{};
  /// The gradients already contain momentum (FeedbackOptions::kind "momentum"): the rule adds only that of the weight
  /// decay.
  bool corrected = false;
  ParallelFor parallel{};  ///< used for large tensors; empty: the calling thread. The result does not depend on it.
  std::optional<SharedUpdate> shared{};  ///< empty: this rank does all the work
  Catalogue catalogue{};                 ///< where `rule` is looked up
};

/// Throws Misuse: an unknown rule, a hyperparameter that the rule does not have, a value out of range, or `corrected`
/// under a rule that cannot use such gradients.
void require_allowed(const OptimizerOptions& options);
/// Whether the rule scales each tensor's update by a trust ratio of its norms (LARS, LAMB). Throws Misuse.
[[nodiscard]] bool is_layer_wise(std::string_view rule, const Catalogue& catalogue = {});

/// One named part of an optimizer's state: a float for each weight that it updates, tensor after tensor.
struct OptimizerState {
  std::string_view name;  ///< "velocity", "mean", "square"
  std::span<float> values;
};

/// Updates weights with their gradients by one rule. Results are bitwise equal on every processor and for any number of
/// threads. A gradient element that is not finite affects only the weights of its tensor: any of them under a
/// layer-wise rule, else only its own. Used by one thread at a time.
class Optimizer final {
 public:
  /// Throws Misuse as `require_allowed` does, and for an empty tensor, a type other than f32, or two equal names.
  explicit Optimizer(std::vector<WeightTensor> tensors, const OptimizerOptions& options = {});
  ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Updates tensor `i` with its gradient and sets the gradient to zero. Throws Misuse for a wrong length, a negative
  /// or non-finite rate, or step 0; also throws what SharedUpdate::gather throws.
  void update(std::size_t i, std::span<float> gradient, const UpdateStep& at);
  /// Updates tensors first, first + 1, …, each with its gradient. Ranks that share the work gather once for all of
  /// them. With `own_shards_only` gradients outside this rank's shards are neither read nor written.
  void update(std::size_t first, std::span<const std::span<float>> gradients, const UpdateStep& at);

  [[nodiscard]] std::string_view rule() const noexcept;
  /// The state by name, to save it or to broadcast it to ranks that update. Initially zero. Its memory is allocated by
  /// the first call of `state` or `update`: a rank that never updates has none.
  [[nodiscard]] std::vector<OptimizerState> state();
  /// Copies a saved state. Throws Misuse if its rule, names or lengths differ.
  void restore(std::string_view rule, std::span<const OptimizerState> saved);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace syncopate
