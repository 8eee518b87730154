// Gradient descent with momentum: the velocity is a sum of all gradients that decays, and weights go against it.
// Polyak, USSR Computational Mathematics 1964; as Sutskever et al., ICML 2013, equation 1, with the rate outside.
//
//   d = g + lambda w;   v' = m v + d;   w' = w - rate v'
//   corrected (g has its momentum: Lin et al., ICLR 2018, section 3.2): d = lambda w;  w' = w - rate (v' + g)
//   moves 24 bytes per weight: reads and writes w, g and v
#include "kernel/update.hpp"
#include "optim/rule.hpp"

namespace syncopate::optim::rule {

namespace {

constexpr Hyperparameter kTakes[] = {momentum(0.9), weight_decay(1e-4)};
constexpr std::string_view kState[] = {"velocity"};

void update(const Step& step, const Part& part) {
  kernel::descend_with_momentum({step.rate(), step.decay(), static_cast<float>(step.with.momentum)},
                                {.nesterov = false, .corrected = step.corrected}, part.size(),
                                {part.weights.data(), part.gradient.data(), part.state[0]});
}

}  // namespace

extern constinit const Rule momentum{
    .name = "momentum",
    .summary = "Against a sum of all gradients that decays: the velocity",
    .source = "Polyak 1964; Sutskever et al., ICML 2013, equation 1",
    .takes = kTakes,
    .state = kState,
    .moved_bytes = 24,
    .takes_corrected = true,
    .update = update,
};

}  // namespace syncopate::optim::rule
