// Price: what plans cost, read off a replay: rounds, bytes, seconds.
#pragma once

#include <vector>

#include "collective/plan/chunk_layout.hpp"
#include "collective/plan/shape.hpp"

namespace syncopate::collective::plan {

/// Where chunks lie, which host each rank is on (empty: one), and what a message costs.
struct PriceInputs {
  ChunkLayout layout;
  std::vector<std::uint32_t> hosts;
  NetworkCost cost;
};

/// All but the algorithm's name.
[[nodiscard]] PlanPrice price(const std::vector<Plan>& plans, const PriceInputs& inputs);

}  // namespace syncopate::collective::plan
