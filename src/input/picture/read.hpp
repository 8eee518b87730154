// Reads compressed pictures: decodes the wanted part of a file to pixels.
#pragma once

#include <cstddef>
#include <span>

#include "input/picture/cut.hpp"

namespace syncopate::input {

/// JPEG by libjpeg-turbo, reduced by 1/2, 1/4 or 1/8 during decoding if the box is larger than the result. Also grey,
/// CMYK and YCCK; rotated upright by Exif. The whole file is checked, whatever part is wanted. Throws Corrupt; Misuse
/// if this build has no libjpeg-turbo. `cut` keeps its memory between calls.
void read_jpeg(std::span<const std::byte> file, const Look& look, Cut& cut);
/// PNG by libpng: any depth and palette, transparent parts on white. Throws Corrupt; Misuse without libpng.
void read_png(std::span<const std::byte> file, const Look& look, Cut& cut);

}  // namespace syncopate::input
