// ChunkLayout: where the chunks of a plan lie, in elements (or bytes) of the vector that it is about.
#pragma once

#include <span>

#include "syncopate/plan.hpp"

namespace syncopate::collective::plan {

/// Even parts of `count`, or as the cut points say. An all-to-all's vector is its two buffers one behind the other.
struct ChunkLayout {
  std::size_t count = 0;
  std::uint32_t chunks = 1;
  std::span<const std::size_t> cuts{};  ///< chunks + 1 of them, ascending, from 0 to count; empty: even parts

  [[nodiscard]] Range run(const PlanStep& step) const {
    const std::size_t first = step.first_chunk, last = first + step.chunk_count;
    if (!cuts.empty()) return {cuts[first], cuts[last]};
    return {even_part(count, chunks, first).begin, even_part(count, chunks, last - 1).end};
  }
};

}  // namespace syncopate::collective::plan
