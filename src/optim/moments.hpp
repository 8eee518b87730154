// Velocity and moments: the state that rules keep per weight, and their factors in a step.
#pragma once

#include <string_view>

#include "kernel/update.hpp"
#include "optim/rule.hpp"

namespace syncopate::optim {

inline constexpr std::string_view kVelocity[] = {"velocity"};
/// Hyperparameters of the rules that are not layer-wise.
inline constexpr Hyperparameter kVelocityTakes[] = {momentum(0.9), weight_decay(1e-4)};

[[nodiscard]] kernel::Momentum momentum_of(const Step& step);
[[nodiscard]] kernel::WithVelocity velocity_of(const TensorSlice& part);

/// Updates weights and velocity for rules that are not layer-wise.
void descend_with_velocity(const Step& step, const TensorSlice& part, kernel::MomentumForm form);

/// Completes an entry of the shelf: momentum and nesterov differ in the form of a step.
template <bool nesterov>
[[nodiscard]] constexpr Rule velocity_rule(Rule own) {
  own.takes = kVelocityTakes;
  own.state = kVelocity;
  own.moved_bytes = 24;
  own.takes_corrected = true;
  own.update = [](const Step& step, const TensorSlice& part) {
    descend_with_velocity(step, part, {.nesterov = nesterov, .corrected = step.corrected});
  };
  return own;
}

inline constexpr std::string_view kMoments[] = {"mean", "square"};

/// With the bias of the first steps corrected: mean_factor = 1 / (1 - beta1^t), root_factor = 1 / sqrt(1 - beta2^t).
/// Computed in f64 and rounded once.
[[nodiscard]] kernel::Moments moments_of(const Step& step);
[[nodiscard]] kernel::WithMoments memory_of(const TensorSlice& part);

}  // namespace syncopate::optim
