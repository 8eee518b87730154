// Images in another resolution.
#pragma once

#include <ATen/ATen.h>

namespace syncopate::train {

/// Images f32 [n, 3, h, w] as [n, 3, side, side]: bilinear, over all pixels that fall into one where they shrink. A
/// side of 0, or one that they have: themselves.
[[nodiscard]] at::Tensor scaled(const at::Tensor& images, int side);

}  // namespace syncopate::train
