// Shape: all that a collective's plan depends on beside its algorithm, and what it carries at which cost.
#pragma once

#include <compare>
#include <string_view>
#include <vector>

#include "syncopate/plan.hpp"

namespace syncopate::collective::plan {

/// What a plan depends on. An algorithm's `settle` fills in what is its own; the rest stays at its default, so that
/// equal plans have equal shapes.
struct Shape {
  Collective collective = Collective::allreduce;
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint32_t root = 0;
  std::uint32_t blocks = 0;             ///< pipeline blocks (hierarchical: those of `inner`)
  std::uint32_t rows = 0, columns = 0;  ///< torus_2d
  std::string_view inner, outer;        ///< hierarchical: names of the shelf
  std::uint32_t outer_blocks = 0;       ///< hierarchical
  std::vector<std::uint32_t> hosts;     ///< by rank: the number of its host, counted from 0; empty: one host
  friend auto operator<=>(const Shape&, const Shape&) = default;  // NOLINT(modernize-use-nullptr): a misreading
};

/// What is to be carried, and what that costs.
struct Load {
  double bytes = 0;
  LinkCost link;   ///< between hosts; within the host where there is only one
  LinkCost local;  ///< within hosts
};

[[nodiscard]] constexpr bool has_root(Collective collective) noexcept {
  return collective == Collective::broadcast || collective == Collective::reduce || collective == Collective::gather ||
         collective == Collective::scatter;
}
/// From one vector into another: its plan has the chunks of both.
[[nodiscard]] constexpr bool swaps(Collective collective) noexcept {
  return collective == Collective::alltoall || collective == Collective::alltoall_v;
}
[[nodiscard]] constexpr bool reduces(Collective collective) noexcept {
  return collective == Collective::allreduce || collective == Collective::reduce ||
         collective == Collective::reduce_scatter || collective == Collective::barrier;
}

}  // namespace syncopate::collective::plan
