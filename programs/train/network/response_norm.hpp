// Local response normalisation, used by networks before batch normalisation existed.
#pragma once

#include <ATen/ATen.h>

namespace syncopate::train {

/// x / (1 + 10⁻⁴ m)^0.75, where m is the mean square of a channel and two on each side, with zeros outside. Shape [n,
/// c, h, w]. Krizhevsky, Sutskever, Hinton 2012, section 3.3, with the constants of their published configuration.
[[nodiscard]] at::Tensor response_norm(const at::Tensor& x);

}  // namespace syncopate::train
