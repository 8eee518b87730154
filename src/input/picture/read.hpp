// Reading compressed pictures: the bytes of a file become the pixels of the part that is wanted.
#pragma once

#include <cstddef>
#include <span>

#include "input/picture/cut.hpp"

namespace syncopate::input {

/// JPEG by libjpeg-turbo, reduced by 1/2, 1/4 or 1/8 while it is decoded where the box is larger than the result. Grey,
/// CMYK and YCCK too; turned upright by Exif. The whole file is looked at, whatever part is wanted. Throws Corrupt;
/// Misuse where this build has no libjpeg-turbo. `cut` keeps its memory between calls.
void read_jpeg(std::span<const std::byte> file, const Look& look, Cut& cut);
/// PNG by libpng: any depth and palette, transparent parts over white. Throws Corrupt; Misuse without libpng.
void read_png(std::span<const std::byte> file, const Look& look, Cut& cut);

}  // namespace syncopate::input
