// Adam: scales each weight's gradient by its usual size, from decaying means of the gradient and of its square.
// Kingma & Ba, ICLR 2015, Algorithm 1; weight decay as part of the gradient.
//
//   g = gradient + lambda w;   m' = beta1 m + (1 - beta1) g;   s' = beta2 s + (1 - beta2) g^2
//   w' = w - rate (m' / (1 - beta1^t)) / (sqrt(s' / (1 - beta2^t)) + epsilon)
//   moves 32 bytes per weight: reads and writes w, g, m and s
#include "optim/moments.hpp"

namespace syncopate::optim::rule {

namespace {

constexpr Hyperparameter kTakes[] = {beta1(0.9), beta2(0.999), epsilon(1e-8), weight_decay(0)};

void update(const Step& step, const TensorSlice& part) {
  kernel::descend_by_moments({step.rate(), step.decay()}, moments_of(step), part.size(), memory_of(part));
}

}  // namespace

extern constinit const Rule adam{
    .name = "adam",
    .summary = "Scales each weight's gradient by its usual size",
    .source = "Kingma & Ba, ICLR 2015, Algorithm 1",
    .takes = kTakes,
    .state = kMoments,
    .moved_bytes = 32,
    .update = update,
};

}  // namespace syncopate::optim::rule
