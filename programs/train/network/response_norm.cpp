// Response normalisation: averages the squares of five neighbouring channels.
#include "network/response_norm.hpp"

namespace syncopate::train {

at::Tensor response_norm(const at::Tensor& x) {
  const at::Tensor squares = at::constant_pad_nd(x.square().unsqueeze(1), {0, 0, 0, 0, 2, 2});
  return x / at::avg_pool3d(squares, {5, 1, 1}, {1, 1, 1}).squeeze(1).mul(1e-4).add(1).pow(0.75);
}

}  // namespace syncopate::train
