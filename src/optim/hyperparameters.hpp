// Hyperparameters: the numbers that rules take, by name, with defaults and limits.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

/// The rule's defaults with the given values. Throws Misuse for a name that the rule does not take, a name given twice,
/// or a value out of range.
[[nodiscard]] Hyperparameters hyperparameters_of(const Rule& rule,
                                                 std::span<const std::pair<std::string, double>> given);

}  // namespace syncopate::optim
