// LAMB: AdamW's direction, scaled, tensor by tensor, to the norm of the weights.
// You et al., ICLR 2020, Algorithm 2, with phi(x) = x; CommLib section 4 divides the norms over ranks.
//
//   m' = beta1 m + (1 - beta1) g;   s' = beta2 s + (1 - beta2) g^2
//   d = (m' / (1 - beta1^t)) / (sqrt(s' / (1 - beta2^t)) + epsilon) + lambda w
//   ratio = ||w|| / ||d||;   1 where a norm is zero, or the tensor is spared
//   w' = w - rate ratio d
//   moves 44 bytes per weight: reads w, g, m, s and writes d (for g), m, s; then reads and writes w and d
#include "optim/moments.hpp"

namespace syncopate::optim::rule {

namespace {

constexpr Hyperparameter kTakes[] = {beta1(0.9), beta2(0.999), epsilon(1e-6), weight_decay(0.01)};

void prepare(const Step& step, const TensorSlice& part) {
  kernel::direction_of_moments(step.decay(), moments_of(step), part.size(), memory_of(part));
}

double ratio(const Hyperparameters& /*with*/, const Norms& norms) { return norms.weights / norms.direction; }

void update(const Step& step, const TensorSlice& part) {
  kernel::descend({step.rate(), 0}, part.size(), part.weights.data(), part.gradient.data());
}

}  // namespace

extern constinit const Rule lamb{
    .name = "lamb",
    .summary = "AdamW's direction, scaled to the norm of each tensor's weights: for large batches",
    .source = "You et al., ICLR 2020, Algorithm 2",
    .takes = kTakes,
    .state = kMoments,
    .moved_bytes = 44,
    .update = update,
    .trust = ratio,
    .prepare = prepare,
};

}  // namespace syncopate::optim::rule
