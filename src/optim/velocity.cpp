// A step's momentum, rounded once from f64, and the update of weights by their velocity.
#include "optim/velocity.hpp"

namespace syncopate::optim {

kernel::Momentum momentum_of(const Step& step) {
  return {step.rate(), step.decay(), static_cast<float>(step.with.momentum)};
}

kernel::WithVelocity velocity_of(const Part& part) {
  return {part.weights.data(), part.gradient.data(), part.state[0]};
}

void descend_with_velocity(const Step& step, const Part& part, kernel::MomentumForm form) {
  kernel::descend_with_momentum(momentum_of(step), form, part.size(), velocity_of(part));
}

}  // namespace syncopate::optim
