// Binary-tree patterns: parent and children of a position. In a pipeline every block goes to both children.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace syncopate::collective::pattern {

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
