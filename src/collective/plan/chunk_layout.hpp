// ChunkLayout: the range of the vector, in elements or bytes, that each chunk of a plan occupies.
#pragma once

#include <span>

#include "syncopate/plan.hpp"

namespace syncopate::collective::plan {

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
