// AdamW: Adam whose weight decay is not divided by the gradient's size.
// Loshchilov & Hutter, ICLR 2019, Algorithm 2, with the rate before both terms.
//
//   m' = beta1 m + (1 - beta1) g;   s' = beta2 s + (1 - beta2) g^2
//   w' = w - rate ((m' / (1 - beta1^t)) / (sqrt(s' / (1 - beta2^t)) + epsilon) + lambda w)
//   moves 32 bytes per weight: reads and writes w, g, m and s
#include "optim/moments.hpp"

namespace syncopate::optim::rule {

namespace {

constexpr Hyperparameter kTakes[] = {beta1(0.9), beta2(0.999), epsilon(1e-8), weight_decay(0.01)};

void update(const Step& step, const TensorSlice& part) {
  kernel::descend_by_moments_decoupled({step.rate(), step.decay()}, moments_of(step), part.size(), memory_of(part));
}

}  // namespace

extern constinit const Rule adamw{
    .name = "adamw",
    .summary = "Adam with decoupled weight decay",
    .source = "Loshchilov & Hutter, ICLR 2019, Algorithm 2",
    .takes = kTakes,
    .state = kMoments,
    .moved_bytes = 32,
    .update = update,
};

}  // namespace syncopate::optim::rule
