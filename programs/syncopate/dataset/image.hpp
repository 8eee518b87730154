// Images: one drawn picture of a shape, as CIFAR-10 stores one.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "dataset/random.hpp"

namespace syncopate::tools::dataset {

inline constexpr int kSide = 32;
/// One record of CIFAR-10's binary format: the label, then the red, green and blue planes, row by row.
using Record = std::array<std::uint8_t, 1 + 3 * kSide * kSide>;

/// A square picture: its red, green and blue planes, row by row.
struct Picture {
  int side = 0;
  std::vector<std::uint8_t> planes;
};

/// A shape of random size, place, colour and rotation on a random background with clutter, and noise over all.
/// `difficulty` 0..1 makes the shape smaller, paler and more alike to the ground, and clutter and noise stronger.
[[nodiscard]] Picture draw_picture(int label, int side, Random random, double difficulty);
/// draw_image with 32 pixels each way.
[[nodiscard]] Record draw_image(int label, Random random, double difficulty);

}  // namespace syncopate::tools::dataset
