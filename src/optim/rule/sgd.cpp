// Stochastic gradient descent: weights move against the gradient; no state.
// Robbins & Monro, Annals of Mathematical Statistics 1951; weight decay as the gradient of lambda/2 ||w||^2.
//
//   w' = w - rate (g + lambda w)
//   moves 16 bytes per weight: reads and writes w and g (which becomes zero)
#include "kernel/update.hpp"
#include "optim/rule.hpp"

namespace syncopate::optim::rule {

namespace {

constexpr Hyperparameter kTakes[] = {weight_decay(1e-4)};

void update(const Step& step, const TensorSlice& part) {
  kernel::descend({step.rate(), step.decay()}, part.size(), part.weights.data(), part.gradient.data());
}

}  // namespace

extern constinit const Rule sgd{
    .name = "sgd",
    .summary = "Subtracts the gradient; no state",
    .source = "Robbins & Monro 1951",
    .takes = kTakes,
    .moved_bytes = 16,
    .update = update,
};

}  // namespace syncopate::optim::rule
