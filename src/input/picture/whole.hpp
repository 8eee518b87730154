// Whole: a picture before any random change, as a record without compression, from which every cut is taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "input/picture/cut.hpp"

namespace syncopate::input {

/// The reader of the compressed file gives the rows of the cut, or all rows. The box is relative to them,
/// and the last bits of a result depend on it.
enum class Kept : std::uint32_t { rows_of_cut, all };

/// The record of `picture`: 4 bytes "SYPX", then width, height and Kept (u32), then red, green and blue of each pixel.
[[nodiscard]] std::vector<std::byte> whole_of(const Cut& picture, Kept kept);
[[nodiscard]] bool is_whole(std::span<const std::byte> record) noexcept;
/// The cut of a record that is_whole. Throws Corrupt unless its length and fields are those that whole_of writes.
void read_whole(std::span<const std::byte> record, const PictureTransform& look, Cut& cut);

}  // namespace syncopate::input
