// Photographs: records that are whole JPEG or PNG files.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "input/picture/cut.hpp"
#include "syncopate/pipeline.hpp"

namespace syncopate::input {

/// The orientation, 1 to 8, that the content of an APP1 segment states (Exif 2.3, section 4.6.4, tag 0x0112 of the 0th
/// IFD); 1 if it states none or is not a complete Exif.
[[nodiscard]] int exif_orientation(std::span<const std::byte> segment) noexcept;

/// JPEG by libjpeg-turbo, reduced by 1/2, 1/4 or 1/8 during decoding if the box is larger than the result. Also grey,
/// CMYK and YCCK; rotated upright by Exif. The whole file is checked, whatever part is wanted. Throws Corrupt; Misuse
/// if this build has no libjpeg-turbo. `cut` keeps its memory between calls.
void read_jpeg(std::span<const std::byte> file, const PictureTransform& look, Cut& cut);
/// All of a JPEG at its full size, upright, in `cut.pixels`. Law: read_jpeg's pixels are rows of these for every
/// transform of `least_side` pixels or more. False, without decoding, if its shorter side is so long that read_jpeg
/// would decode some cut at a smaller scale. `is_turned`: Exif has turned it. Throws what read_jpeg throws.
[[nodiscard]] bool read_whole_jpeg(std::span<const std::byte> file, int least_side, Cut& cut, bool& is_turned);
/// PNG by libpng: any depth and palette, transparent parts on white. Throws Corrupt; Misuse without libpng.
void read_png(std::span<const std::byte> file, const PictureTransform& look, Cut& cut);

}  // namespace syncopate::input
