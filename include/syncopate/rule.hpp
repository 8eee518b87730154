// Rule: how an optimizer changes weights by a gradient, the state it keeps, and the hyperparameters it takes.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "syncopate/hook.hpp"
#include "syncopate/optimizer.hpp"

namespace syncopate::optim {

struct Rule;

/// A rule ignores those that it does not take.
struct Hyperparameters {
  double weight_decay = 0;  ///< lambda
  double momentum = 0;      ///< m
  double beta1 = 0, beta2 = 0;
  double epsilon = 0;
  double trust = 0;  ///< eta, LARS' coefficient
};

/// Numbers from `least` to `most`; `open` excludes the ends.
struct Limits {
  double least, most;
  bool open_least = false, open_most = false;
};

/// A hyperparameter of a rule, with its default and limits.
struct Hyperparameter {
  std::string_view name;
  double Hyperparameters::*field;
  Limits limits;
  double usual;
};

constexpr double kNoLimit = 1e30;  ///< within f32, with room for products

constexpr Hyperparameter weight_decay(double usual) {
  return {"weight_decay", &Hyperparameters::weight_decay, {0, kNoLimit}, usual};
}
constexpr Hyperparameter momentum(double usual) { return {"momentum", &Hyperparameters::momentum, {0, 1}, usual}; }
constexpr Hyperparameter beta1(double usual) { return {"beta1", &Hyperparameters::beta1, {0, 1, false, true}, usual}; }
constexpr Hyperparameter beta2(double usual) { return {"beta2", &Hyperparameters::beta2, {0, 1, false, true}, usual}; }
/// Above zero, because nothing else divides the direction of a weight that never had a gradient.
constexpr Hyperparameter epsilon(double usual) {
  return {"epsilon", &Hyperparameters::epsilon, {1e-30, kNoLimit}, usual};
}
constexpr Hyperparameter trust(double usual) {
  return {"trust", &Hyperparameters::trust, {0, kNoLimit, true, false}, usual};
}

inline constexpr std::size_t kMostStates = 2;

/// A contiguous part of one tensor, f32: weights, gradient and each state have the same length and do not overlap.
struct TensorSlice {
  std::span<float> weights, gradient;
  std::array<float*, kMostStates> state{};

  [[nodiscard]] std::size_t size() const noexcept { return weights.size(); }
  /// Elements [begin, end) of this part.
  [[nodiscard]] TensorSlice cut(Range range) const {
    TensorSlice part{weights.subspan(range.begin, range.size()), gradient.subspan(range.begin, range.size())};
    for (std::size_t i = 0; i < kMostStates; ++i) part.state[i] = state[i] ? state[i] + range.begin : nullptr;
    return part;
  }
};

/// One update of one tensor.
struct Step {
  const Hyperparameters& with;
  UpdateStep at;
  bool corrected = false;  ///< gradients already contain momentum
  bool spared = false;     ///< no weight decay, and no trust ratio
  double trust = 1;        ///< the tensor's trust ratio

  /// The product of the rate and the trust ratio, limited to the range of f32.
  [[nodiscard]] float rate() const;
  [[nodiscard]] float decay() const noexcept { return spared ? 0.0F : static_cast<float>(with.weight_decay); }
};

/// The Euclidean norms of a tensor's weights and of its direction.
struct Norms {
  double weights = 0, direction = 0;
};

/// A tensor may be cut into parts anywhere: `prepare` and `update` treat every element by itself.
struct Rule {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  std::span<const Hyperparameter> takes;
  std::span<const std::string_view> state{};  ///< names of the states, each a float per weight; initially zero
  std::size_t moved_bytes = 0;   ///< physical limit: bytes per weight that one update moves between memory and caches
  bool takes_corrected = false;  ///< it can use gradients that already contain momentum
  /// Updates weights and state and sets the gradient to zero.
  Hook<void(const Step& step, const TensorSlice& part)> update;

  // Layer-wise rules: a trust ratio for each tensor, from the norms of its weights and of its direction.

  /// The trust ratio of norms above zero. Null: the rule is not layer-wise.
  double (*trust)(const Hyperparameters& with, const Norms& norms) = nullptr;
  /// Called before norms and update; replaces the gradient by the direction. Null: the gradient is the direction.
  void (*prepare)(const Step& step, const TensorSlice& part) = nullptr;
};

}  // namespace syncopate::optim
