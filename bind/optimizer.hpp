// An optimizer for Python: a rule with its state, for arrays of any framework, alone or divided over a group.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "array.hpp"
#include "group.hpp"
#include "syncopate/optimizer.hpp"

namespace syncopate::bind {

/// The weights of an optimizer, by name, and the names of those that are spared.
struct OptimizedWeights {
  std::vector<std::pair<std::string, nb::object>> arrays;
  std::vector<std::string> spared;
};

/// An optimizer, and the rates of the step in progress. Created and destroyed with the GIL.
class Optimizing final {
 public:
  /// `membership`: the group whose ranks divide the work; null: this rank does all of it. Throws Misuse.
  Optimizing(const OptimizedWeights& weights, OptimizerOptions options,
             std::shared_ptr<std::vector<nb::object>> components, const Membership* membership, bool own_shards_only);
  Optimizing(const Optimizing&) = delete;
  Optimizing& operator=(const Optimizing&) = delete;

  /// Between steps: a rate for each tensor. Throws Misuse.
  void begin_step(std::vector<double> rates, std::uint64_t step);
  /// Updates tensors first, first + 1, … at the rates of `begin_step`. Runs on: any thread, without the GIL.
  void update(std::size_t first, std::span<const std::span<float>> gradients);
  /// The same at this rate and step, with the GIL.
  void update(std::size_t first, const std::vector<nb::object>& gradients, const UpdateStep& at);

  [[nodiscard]] Optimizer& own() noexcept { return *own_; }
  [[nodiscard]] const Shards& shards() const noexcept { return shards_; }
  /// Throws Misuse unless a synchronizer with these weights and this exchange can update by this optimizer.
  void require_fits(const std::vector<Array>& weights, std::string_view exchange) const;

 private:
  std::vector<Array> weights_;
  std::shared_ptr<std::vector<nb::object>> components_;  ///< of the catalogue
  std::shared_ptr<Signals> signals_;
  Shards shards_;
  bool own_shards_only_;
  std::vector<double> rates_;  ///< empty: no step has begun
  std::uint64_t step_ = 0;
  std::unique_ptr<Optimizer> own_;
};

}  // namespace syncopate::bind
