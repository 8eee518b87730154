// Cut: the part of a picture that becomes the result, with its pixels as the file reader returns them.
#pragma once

#include <cstdint>
#include <vector>

#include "syncopate/pipeline.hpp"

namespace syncopate::input {

struct Size {
  int width = 0;
  int height = 0;
};

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};

/// A box that is scaled to a square, within the decoded pixels that contain it.
struct Cut {
  Size size;                         ///< of `pixels`
  std::vector<std::uint8_t> pixels;  ///< rows of red, green, blue and one unused byte
  Box box;                           ///< within size
};

/// Throws Corrupt unless the declared size has pixels, and not more than 2^26 of them (a picture of 67 million pixels).
void require_reasonable(std::uint64_t width, std::uint64_t height);

/// In training a rectangle of 8 % to 100 % of the area with an aspect ratio from 3:4 to 4:3, anywhere (Szegedy et al.
/// 2015, section 6); in evaluation the middle square of 7/8 of the shorter side (256 and 224 pixels in their paper).
[[nodiscard]] Box box_of(const Size& picture, const PictureTransform& look);
/// Whether the result is mirrored: half of the pictures in training, unless PictureTransform::mirror is false.
[[nodiscard]] bool is_mirrored(const PictureTransform& look);

/// The least n of 1, 2, 4, 8 such that the box scaled by n/8 has at least `side` pixels each way; 8 if none has.
[[nodiscard]] int eighths_for(const Box& box, int side);

/// Rotates or mirrors the pixels upright. The box is already in upright coordinates. `orientation`: Exif's 1 to 8.
void turn_upright(Cut& cut, int orientation);

}  // namespace syncopate::input
