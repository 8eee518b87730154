// Summing the bits of elements: one read of memory, as a reference for other work on the same elements.
#pragma once

#include <cstdint>
#include <span>

namespace syncopate::kernel {

/// The sum of the elements' bits as unsigned numbers, modulo 2^32: the same for any order of summation. The physical
/// limit is one read of the elements.
[[nodiscard]] std::uint32_t bit_sum(std::span<const float> elements);

}  // namespace syncopate::kernel
