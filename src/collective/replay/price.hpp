// Price: what plans cost, read off a replay: rounds, bytes, seconds.
#pragma once

#include <vector>

#include "collective/plan/chunk_layout.hpp"
#include "collective/plan/shape.hpp"
#include "collective/replay/ensemble.hpp"

namespace syncopate::collective::replay {

/// Where chunks lie, which host each rank is on (empty: one), and what a message costs.
struct PriceInputs {
  plan::ChunkLayout layout;
  std::vector<std::uint32_t> hosts;
  NetworkCost cost;
};

/// All but the algorithm's name.
[[nodiscard]] PlanPrice price(const Ensemble& ensemble, const PriceInputs& inputs);
/// Whether messages cost the same wherever they go, so that one program may stand for all: ranks are on one host, or
/// each on its own.
[[nodiscard]] bool are_alike(const std::vector<std::uint32_t>& hosts);

}  // namespace syncopate::collective::replay
