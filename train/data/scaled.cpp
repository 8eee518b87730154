// Images in another resolution: bilinear interpolation that averages where it shrinks.
#include "data/scaled.hpp"

#include <array>

namespace syncopate::train {

at::Tensor scaled(const at::Tensor& images, int side) {
  if (side == 0 || (images.size(2) == side && images.size(3) == side)) return images;
  const std::array<std::int64_t, 2> size{side, side};
  return at::_upsample_bilinear2d_aa(images, size, false, std::optional<double>(), std::optional<double>());
}

}  // namespace syncopate::train
