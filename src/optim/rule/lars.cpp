// LARS: momentum whose rate is scaled, tensor by tensor, by the ratio of the weights' norm to the gradient's.
// You, Gitman & Ginsburg, arXiv:1708.03888, equation 6 and Algorithm 1; CommLib section 4 divides the norms over ranks.
//
//   ratio = eta ||w|| / (||g|| + lambda ||w||);   1 where a norm is zero, or the tensor is spared
//   v' = m v + rate ratio (g + lambda w);   w' = w - v'
//   moves 32 bytes per weight: reads w and g for the norms; then reads and writes w, g and v
#include "optim/moments.hpp"

namespace syncopate::optim::rule {

namespace {

constexpr Hyperparameter kTakes[] = {trust(0.001), momentum(0.9), weight_decay(1e-4)};

double ratio(const Hyperparameters& with, const Norms& norms) {
  return with.trust * norms.weights / (norms.direction + with.weight_decay * norms.weights);
}

void update(const Step& step, const TensorSlice& part) {
  kernel::descend_with_scaled_momentum(momentum_of(step), part.size(), velocity_of(part));
}

}  // namespace

extern constinit const Rule lars{
    .name = "lars",
    .summary = "Momentum with a rate per tensor from the norms of weights and gradient: for large batches",
    .source = "You, Gitman & Ginsburg, arXiv:1708.03888, Algorithm 1",
    .takes = kTakes,
    .state = kVelocity,
    .moved_bytes = 32,
    .update = update,
    .trust = ratio,
};

}  // namespace syncopate::optim::rule
