// Shape: everything except the algorithm that a collective's plan depends on, with its load and chunk layout.
#pragma once

#include <compare>
#include <span>
#include <string_view>
#include <vector>

#include "syncopate/plan.hpp"

namespace syncopate::collective::plan {

/// Everything that a plan depends on. An algorithm's `resolve` sets the fields that it uses; the others keep their
/// defaults, so that equal plans have equal shapes.
struct Shape {
  Collective collective = Collective::allreduce;
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint32_t root = 0;
  std::uint32_t blocks = 0;                                       ///< pipeline blocks (hierarchical: of `inner`)
  std::uint32_t rows = 0, columns = 0;                            ///< torus_2d
  std::string_view inner, outer;                                  ///< hierarchical: names of the shelf
  std::uint32_t outer_blocks = 0;                                 ///< hierarchical: pipeline blocks of `outer`
  std::vector<std::uint32_t> hosts;                               ///< host number of each rank, from 0; empty: one host
  friend auto operator<=>(const Shape&, const Shape&) = default;  // NOLINT(modernize-use-nullptr): a misreading
};

/// The vector's size and the costs of the links.
struct Load {
  double bytes = 0;
  LinkCost link;   ///< between hosts; if there is only one host, inside it
  LinkCost local;  ///< inside hosts
};

[[nodiscard]] constexpr bool has_root(Collective collective) noexcept {
  return collective == Collective::broadcast || collective == Collective::reduce || collective == Collective::gather ||
         collective == Collective::scatter;
}
/// Whether the collective moves data from one vector into another; its plan then has the chunks of both.
[[nodiscard]] constexpr bool swaps(Collective collective) noexcept {
  return collective == Collective::alltoall || collective == Collective::alltoall_v;
}
[[nodiscard]] constexpr bool reduces(Collective collective) noexcept {
  return collective == Collective::allreduce || collective == Collective::reduce ||
         collective == Collective::reduce_scatter || collective == Collective::barrier;
}

/// Even parts of `count`, or parts between cut points. An all-to-all's vector is `in` followed by `out`.
struct ChunkLayout {
  std::size_t count = 0;
  std::uint32_t chunks = 1;
  std::span<const std::size_t> cuts{};  ///< chunks + 1 ascending positions from 0 to count; empty: even parts

  [[nodiscard]] Range run(const PlanStep& step) const {
    const std::size_t first = step.first_chunk, last = first + step.chunk_count;
    if (!cuts.empty()) return {cuts[first], cuts[last]};
    return {even_part(count, chunks, first).begin, even_part(count, chunks, last - 1).end};
  }
};

}  // namespace syncopate::collective::plan
