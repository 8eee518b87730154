// Velocity and moments: their factors in a step.
#include "optim/moments.hpp"

#include <cmath>

namespace syncopate::optim {

kernel::Momentum momentum_of(const Step& step) {
  return {step.rate(), step.decay(), static_cast<float>(step.with.momentum)};
}

kernel::WithVelocity velocity_of(const TensorSlice& part) {
  return {part.weights.data(), part.gradient.data(), part.state[0]};
}

void descend_with_velocity(const Step& step, const TensorSlice& part, kernel::MomentumForm form) {
  kernel::descend_with_momentum(momentum_of(step), form, part.size(), velocity_of(part));
}

namespace {

/// By squaring: bitwise equal on every machine, unlike std::pow.
double power(double base, std::uint64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}

}  // namespace

kernel::Moments moments_of(const Step& step) {
  const double beta1 = step.with.beta1, beta2 = step.with.beta2;
  const std::uint64_t t = step.at.step;
  return {.beta1 = static_cast<float>(beta1),
          .rest1 = static_cast<float>(1 - beta1),
          .beta2 = static_cast<float>(beta2),
          .rest2 = static_cast<float>(1 - beta2),
          .mean_factor = static_cast<float>(1 / (1 - power(beta1, t))),
          .root_factor = static_cast<float>(1 / std::sqrt(1 - power(beta2, t))),
          .epsilon = static_cast<float>(step.with.epsilon)};
}

kernel::WithMoments memory_of(const TensorSlice& part) {
  return {part.weights.data(), part.gradient.data(), part.state[0], part.state[1]};
}

}  // namespace syncopate::optim
