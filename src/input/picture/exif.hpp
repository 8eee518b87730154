// Exif: the orientation that a camera wrote into a JPEG's APP1 segment.
#pragma once

#include <cstddef>
#include <span>

namespace syncopate::input {

/// The orientation, 1 to 8, that the content of an APP1 segment states (Exif 2.3, section 4.6.4, tag 0x0112 of the 0th
/// IFD); 1 if it states none or is not a complete Exif.
[[nodiscard]] int exif_orientation(std::span<const std::byte> segment) noexcept;

}  // namespace syncopate::input
