// The velocity, shared by momentum, nesterov and lars: its law in a step, and its state.
#pragma once

#include <string_view>

#include "kernel/update.hpp"
#include "optim/rule.hpp"

namespace syncopate::optim {

inline constexpr std::string_view kVelocity[] = {"velocity"};
/// Hyperparameters of the rules that are not layer-wise.
inline constexpr Hyperparameter kVelocityTakes[] = {momentum(0.9), weight_decay(1e-4)};

[[nodiscard]] kernel::Momentum momentum_of(const Step& step);
[[nodiscard]] kernel::WithVelocity velocity_of(const Part& part);

/// Updates weights and velocity for rules that are not layer-wise.
void descend_with_velocity(const Step& step, const Part& part, kernel::MomentumForm form);

/// Completes an entry of the shelf: momentum and nesterov differ in the form of a step.
template <bool nesterov>
[[nodiscard]] constexpr Rule velocity_rule(Rule own) {
  own.takes = kVelocityTakes;
  own.state = kVelocity;
  own.moved_bytes = 24;
  own.takes_corrected = true;
  own.update = [](const Step& step, const Part& part) {
    descend_with_velocity(step, part, {.nesterov = nesterov, .corrected = step.corrected});
  };
  return own;
}

}  // namespace syncopate::optim
