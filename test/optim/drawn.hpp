// Shared by the tests of optimizers: random numbers, and an optimizer over vectors.
#pragma once

#include <bit>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "optim/rule.hpp"
#include "syncopate/optimizer.hpp"

namespace syncopate::test {

inline std::vector<float> normal(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> distribution;
  std::vector<float> values(count);
  for (float& value : values) value = distribution(random);
  return values;
}

inline std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

/// One tensor under one rule.
class Tensor final {
 public:
  Tensor(std::vector<float> start, const OptimizerOptions& options, bool spared = false)
      : weights_(std::move(start)), optimizer_({{"w", std::span(weights_), spared}}, options) {}

  void update(std::vector<float> gradient, double rate, std::uint64_t step) {
    optimizer_.update(0, gradient, {.rate = rate, .step = step});
    left_ = std::move(gradient);
  }
  [[nodiscard]] const std::vector<float>& weights() const { return weights_; }
  [[nodiscard]] const std::vector<float>& left_of_gradient() const { return left_; }
  [[nodiscard]] Optimizer& optimizer() { return optimizer_; }

 private:
  std::vector<float> weights_, left_;
  Optimizer optimizer_;
};

}  // namespace syncopate::test
