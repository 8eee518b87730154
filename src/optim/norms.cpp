// Squares of blocks by the kernel, sums of blocks in their order.
#include "optim/norms.hpp"

#include <cmath>

#include "kernel/norm.hpp"

namespace syncopate::optim {

namespace {

double squared(std::span<const float> values) {
  return kernel::squared_norm(DType::f32, std::as_bytes(values).data(), values.size());
}

}  // namespace

Squares squares_of(const Part& block) { return {squared(block.weights), squared(block.gradient)}; }

Norms norms_of(std::span<const Squares> blocks) {
  Squares sum;
  for (const Squares& block : blocks) {
    sum.weights += block.weights;
    sum.direction += block.direction;
  }
  return {std::sqrt(sum.weights), std::sqrt(sum.direction)};
}

double trust_of(const Rule& rule, const Hyperparameters& with, const Norms& norms) {
  if (norms.weights == 0 || norms.direction == 0) return 1;
  return rule.trust(with, norms);
}

}  // namespace syncopate::optim
