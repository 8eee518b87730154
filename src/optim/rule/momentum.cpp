// Gradient descent with momentum: the velocity is a decaying sum of all gradients; weights move against it.
// Polyak, USSR Computational Mathematics 1964; as Sutskever et al., ICML 2013, equation 1, with the rate outside.
//
//   d = g + lambda w;   v' = m v + d;   w' = w - rate v'
//   corrected (g already contains momentum: Lin et al., ICLR 2018, section 3.2): d = lambda w;  w' = w - rate (v' + g)
//   moves 24 bytes per weight: reads and writes w, g and v
#include "optim/moments.hpp"

namespace syncopate::optim::rule {

extern constinit const Rule momentum = velocity_rule<false>({
    .name = "momentum",
    .summary = "Subtracts a decaying sum of all gradients: the velocity",
    .source = "Polyak 1964; Sutskever et al., ICML 2013, equation 1",
});

}  // namespace syncopate::optim::rule
