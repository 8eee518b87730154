// Selecting elements by magnitude, which sparse codecs do with every element of a gradient.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace syncopate::kernel {

/// The magnitude of an element as an integer: its bits without the sign. It orders as |x| does, with NaN above
/// infinity, so that selections are defined for every input and equal on every machine.
[[nodiscard]] constexpr std::uint32_t magnitude(float x) noexcept {
  return std::bit_cast<std::uint32_t>(x) & 0x7fff'ffffU;
}

/// The least magnitude that is not finite: that of infinity.
inline constexpr std::uint32_t kNotFinite = 0x7f80'0000U;

/// Elements of a vector; the first one has index `first`.
struct Selectable {
  const float* elements;
  std::size_t count;
  std::uint32_t first;
};

/// The destination of selected elements. Both arrays have room for all examined elements.
struct SelectInto {
  std::uint32_t* indices;
  float* values;
};

/// Writes the elements whose magnitude is at least `least`, in order. Returns their number. The physical limit is one
/// read of the elements. Safe from any thread; nothing allocates.
[[nodiscard]] std::size_t select_at_least(std::uint32_t least, const Selectable& from, const SelectInto& into);

/// The number of elements whose magnitude is at least `least`. One read of the elements, no write.
[[nodiscard]] std::size_t count_at_least(std::uint32_t least, const float* elements, std::size_t count);

/// The largest magnitude; 0 if there are no elements. One read of the elements.
[[nodiscard]] std::uint32_t largest_magnitude(const float* elements, std::size_t count);

}  // namespace syncopate::kernel
