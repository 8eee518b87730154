// Nesterov's momentum: weights move to where the velocity carries them after this gradient.
// Nesterov, Soviet Mathematics Doklady 1983; as Sutskever et al., ICML 2013, equation 3, expressed in the look-ahead
// weights.
//
//   d = g + lambda w;   v' = m v + d;   w' = w - rate (d + m v')
//   corrected (g already contains momentum: Lin et al., ICLR 2018, section 3.2):
//   d = lambda w;  v' = m v + d;  w' = w - rate (d + m v' + g)
//
// It moves 24 bytes per weight: reads and writes w, g and v.
#include "optim/moments.hpp"

namespace syncopate::optim::rule {

extern constinit const Rule nesterov = velocity_rule<true>({
    .name = "nesterov",
    .summary = "Momentum that looks one step ahead",
    .source = "Nesterov 1983; Sutskever et al., ICML 2013, equation 3",
});

}  // namespace syncopate::optim::rule
