// AdaGrad: scales each weight's gradient by the root of the sum of all its squares, so that rare features learn fast.
// Duchi, Hazan & Singer, JMLR 2011, Figure 1 with diagonal matrices; weight decay as part of the gradient.
//
//   g = gradient + lambda w;   s' = s + g^2;   w' = w - rate g / (sqrt(s') + epsilon)
//   moves 24 bytes per weight: reads and writes w, g and s
#include "kernel/update.hpp"
#include "optim/rule.hpp"

namespace syncopate::optim::rule {

namespace {

constexpr Hyperparameter kTakes[] = {epsilon(1e-10), weight_decay(0)};
constexpr std::string_view kSquare[] = {"square"};

void update(const Step& step, const TensorSlice& part) {
  kernel::descend_by_squares({step.rate(), step.decay()}, static_cast<float>(step.with.epsilon), part.size(),
                             {part.weights.data(), part.gradient.data(), part.state[0]});
}

}  // namespace

extern constinit const Rule adagrad{
    .name = "adagrad",
    .summary = "Scales each weight's gradient by the sum of its squares: for rare features",
    .source = "Duchi, Hazan & Singer, JMLR 2011, Figure 1",
    .takes = kTakes,
    .state = kSquare,
    .moved_bytes = 24,
    .update = update,
};

}  // namespace syncopate::optim::rule
