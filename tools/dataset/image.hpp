// Images: one drawn picture of a shape, as CIFAR-10 stores one.
#pragma once

#include <array>
#include <cstdint>

#include "dataset/random.hpp"

namespace syncopate::tools::dataset {

inline constexpr int kSide = 32;
/// One record of CIFAR-10's binary format: the label, then the red, green and blue planes, row by row.
using Record = std::array<std::uint8_t, 1 + 3 * kSide * kSide>;

/// A shape of random size, place, colour and rotation on a random background with clutter, and noise over all.
[[nodiscard]] Record draw_image(int label, Random random);

}  // namespace syncopate::tools::dataset
