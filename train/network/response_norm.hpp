// Normalisation by neighbouring channels, of the networks before batch normalisation.
#pragma once

#include <ATen/ATen.h>

namespace syncopate::train {

/// x / (1 + 10⁻⁴ m)^0.75, m the mean square of a channel and the two on each side of it, zero beyond the last. [n, c,
/// h, w]. Krizhevsky, Sutskever, Hinton 2012, section 3.3, with the constants of its published configuration.
[[nodiscard]] at::Tensor response_norm(const at::Tensor& x);

}  // namespace syncopate::train
