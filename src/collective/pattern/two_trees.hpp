// Two trees on the same ranks with different inner nodes, and a timetable for blocks of a message.
// No two blocks use a port at the same time. Positions count from the root of the collective, the parent of both trees'
// roots. Sanders, Speck & Traeff, Parallel Computing 35(12), 2009, sections 3 and 4.
#pragma once

#include <algorithm>
#include <vector>

#include "collective/pattern/pattern.hpp"

namespace syncopate::collective::pattern {

/// Both trees are in-order trees of places 1 ... count. In the first tree position p has place p. In the second tree it
/// has the mirrored place (count even) or the next place (count odd), so that leaves of one tree are inner nodes of the
/// other. Blocks of the first (second) tree leave the root at even (odd) times. The edge into a position is used only
/// at even times or only at odd times: this is its colour. Two edges from one parent differ in colour, and so do the
/// two edges into one position. Each edge has at most two such neighbours, so paths and even cycles are coloured one by
/// one.
class TwoTrees final {
 public:
  explicit TwoTrees(std::uint32_t size) : count_(size - 1) {
    for (auto& colours : colours_) colours.assign(size, kNobody);
    for (auto& delays : delays_) delays.assign(size, kNobody);
    paint({0, top(0)}, 0);
    for (std::uint32_t at = 1; at <= count_; ++at)
      for (const std::uint32_t tree : {0U, 1U}) paint({tree, at}, 0);
    for (const std::uint32_t tree : {0U, 1U}) descend(tree, top(tree), 0);
  }

  [[nodiscard]] Node node(std::uint32_t tree, std::uint32_t at) const {
    if (at == 0) return {.parent = kNobody, .children = {top(tree), kNobody}};
    Node node = inorder_node(place(tree, at), count_);
    node.parent = node.parent == kNobody ? 0 : position(tree, node.parent);
    for (std::uint32_t& child : node.children)
      if (child != kNobody) child = position(tree, child);
    return node;
  }
  /// Block j of a tree travels to `at` in the unit of time that begins at 2 j + delay.
  [[nodiscard]] std::uint32_t delay(std::uint32_t tree, std::uint32_t at) const { return delays_[tree][at]; }
  /// Units of time until the last of `blocks` blocks, which alternate between the trees, has reached every rank. A
  /// single block need not wait for its colour.
  [[nodiscard]] std::uint32_t duration(std::uint32_t blocks) const {
    if (blocks == 1) return depth(top(0));
    std::uint32_t most = 0;
    for (const std::uint32_t tree : {0U, 1U}) {
      const std::uint32_t last = (blocks + 1 - tree) / 2;
      const std::uint32_t delay = *std::max_element(delays_[tree].begin() + 1, delays_[tree].end());
      if (last > 0) most = std::max(most, 2 * (last - 1) + delay + 1);
    }
    return most;
  }

 private:
  /// The edge into a position, in one of the trees.
  struct Edge {
    std::uint32_t tree = 0, into = 0;
  };

  [[nodiscard]] std::uint32_t place(std::uint32_t tree, std::uint32_t at) const {
    if (tree == 0) return at;
    return count_ % 2 == 0 ? count_ + 1 - at : at % count_ + 1;
  }
  [[nodiscard]] std::uint32_t position(std::uint32_t tree, std::uint32_t place) const {
    if (tree == 0) return place;
    return count_ % 2 == 0 ? count_ + 1 - place : (place + count_ - 2) % count_ + 1;
  }
  [[nodiscard]] std::uint32_t top(std::uint32_t tree) const { return position(tree, std::bit_floor(count_)); }

  /// The other edge from the same sender; its target is kNobody if there is none.
  [[nodiscard]] Edge sibling(const Edge& edge) const {
    const std::uint32_t parent = node(edge.tree, edge.into).parent;
    if (parent == 0) return {1 - edge.tree, top(1 - edge.tree)};
    const auto children = node(edge.tree, parent).children;
    return {edge.tree, children[0] == edge.into ? children[1] : children[0]};
  }

  void paint(Edge start, std::uint32_t colour) {
    for (const bool by_sibling_first : {true, false}) {
      std::uint32_t next_colour = colour;
      bool by_sibling = by_sibling_first;
      for (Edge edge = start; edge.into != kNobody; by_sibling = !by_sibling, next_colour = 1 - next_colour) {
        std::uint32_t& painted = colours_[edge.tree][edge.into];
        if (painted != kNobody && !(edge.tree == start.tree && edge.into == start.into)) break;
        if (painted != kNobody && painted != next_colour) break;
        painted = next_colour;
        edge = by_sibling ? sibling(edge) : Edge{1 - edge.tree, edge.into};
      }
    }
  }

  /// The first time at or after `earliest` that has the parity of the edge's colour.
  void descend(std::uint32_t tree, std::uint32_t at, std::uint32_t earliest) {
    delays_[tree][at] = earliest + (earliest + colours_[tree][at]) % 2;
    for (const std::uint32_t child : node(tree, at).children)
      if (child != kNobody) descend(tree, child, delays_[tree][at] + 1);
  }

  /// Units of time until a single block of the first tree has left `at` for its children: one more than its arrival
  /// there.
  [[nodiscard]] std::uint32_t depth(std::uint32_t at) const {
    auto children = node(0, at).children;
    if (children[1] != kNobody && delay(0, children[1]) < delay(0, children[0])) std::swap(children[0], children[1]);
    std::uint32_t most = 0;
    for (const std::uint32_t turn : {0U, 1U})
      if (children[turn] != kNobody) most = std::max(most, turn + depth(children[turn]));
    return most + 1;
  }

  std::uint32_t count_;
  std::vector<std::uint32_t> colours_[2], delays_[2];  ///< by tree, by position
};

}  // namespace syncopate::collective::pattern
