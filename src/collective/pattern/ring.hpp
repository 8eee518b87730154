// Ring pattern: the chunk of each step. Every rank sends to rank + 1 and receives from rank - 1.
#pragma once

#include <cstdint>

namespace syncopate::collective::pattern {

[[nodiscard]] constexpr std::uint32_t next(std::uint32_t rank, std::uint32_t size) { return (rank + 1) % size; }
[[nodiscard]] constexpr std::uint32_t previous(std::uint32_t rank, std::uint32_t size) {
  return (rank + size - 1) % size;
}

// Reduce-scatter, steps 0 ... size - 2: a chunk starts at its owner's successor and is complete when it reaches its
// owner.
[[nodiscard]] constexpr std::uint32_t scattered_chunk(std::uint32_t rank, std::uint32_t size, std::uint32_t step) {
  return (rank + 2 * size - step - 1) % size;
}
// All-gather, steps 0 ... size - 2: a chunk starts at its owner.
[[nodiscard]] constexpr std::uint32_t gathered_chunk(std::uint32_t rank, std::uint32_t size, std::uint32_t step) {
  return (rank + size - step) % size;
}

}  // namespace syncopate::collective::pattern
