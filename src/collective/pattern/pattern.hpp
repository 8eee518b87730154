// Patterns: which ranks communicate in each step: ring, hypercube, binomial tree, binary tree, and the ranks left over.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace syncopate::collective::pattern {

/// The half-open range [first, first + count).
struct Run {
  std::uint32_t first = 0, count = 0;
};

struct ExtraRanks {
  std::uint32_t room = 1;  ///< ranks that take part in the pattern
  std::uint32_t size = 1;  ///< ranks in total

  [[nodiscard]] constexpr bool is_extra(std::uint32_t rank) const { return rank >= room; }
  [[nodiscard]] constexpr std::uint32_t partner_of(std::uint32_t extra) const { return extra % room; }
  /// The extra ranks of a partner are first_extra, first_extra + room, ... below size.
  [[nodiscard]] constexpr std::uint32_t first_extra(std::uint32_t partner) const { return partner + room; }
};

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

/// Corners are the ranks below the largest power of two; the others are extra ranks.
struct Hypercube {
  std::uint32_t size = 1;  ///< ranks in total

  [[nodiscard]] constexpr std::uint32_t corners() const { return std::bit_floor(size); }
  [[nodiscard]] constexpr ExtraRanks extra_ranks() const { return {corners(), size}; }
};

/// The half of `run` that `corner` keeps in its exchange with `corner ^ mask`; the partner keeps the other one.
[[nodiscard]] constexpr Run kept_half(Run run, std::uint32_t corner, std::uint32_t mask) {
  const std::uint32_t half = run.count / 2;
  return (corner & mask) != 0 ? Run{run.first + half, half} : Run{run.first, half};
}

/// Distance of the farthest pair: the largest power of two below `size` (size >= 2).
[[nodiscard]] constexpr std::uint32_t farthest(std::uint32_t size) { return std::bit_floor(size - 1); }
/// Position `at` is the upper (root-side) partner at this distance, and the lower partner exists.
[[nodiscard]] constexpr bool is_parent(std::uint32_t at, std::uint32_t size, std::uint32_t mask) {
  return at % (2 * mask) == 0 && at + mask < size;
}
[[nodiscard]] constexpr bool is_child(std::uint32_t at, std::uint32_t mask) { return at % (2 * mask) == mask; }

inline constexpr std::uint32_t kNobody = 0xffffffff;

struct Node {
  std::uint32_t parent = kNobody;
  std::array<std::uint32_t, 2> children{kNobody, kNobody};  ///< in the order in which they are served
};

/// Heap-ordered tree: position 0 is the root, the children of i are 2i + 1 and 2i + 2.
[[nodiscard]] constexpr Node heap_node(std::uint32_t at, std::uint32_t size) {
  Node node;
  if (at > 0) node.parent = (at - 1) / 2;
  if (2 * at + 1 < size) node.children[0] = 2 * at + 1;
  if (2 * at + 2 < size) node.children[1] = 2 * at + 2;
  return node;
}

/// In-order tree of positions 1 ... count: odd positions are leaves, and the root is the largest power of two. The
/// lowest set bit of a position is its height; a parent beyond `count` is replaced by that parent's parent.
[[nodiscard]] constexpr Node inorder_node(std::uint32_t at, std::uint32_t count) {
  Node node;
  const std::uint32_t bit = at & (~at + 1);
  if (at != std::bit_floor(count)) {
    node.parent = (at ^ bit) | (bit << 1);
    if (node.parent > count) node.parent = at ^ bit;
  }
  if (bit > 1) node.children[0] = at - bit / 2;
  std::uint32_t right = bit / 2;
  while (right > 0 && at + right > count) right /= 2;
  if (right > 0) node.children[1] = at + right;
  return node;
}

}  // namespace syncopate::collective::pattern
