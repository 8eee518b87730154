// Price: the cost of plans from a replay: rounds, bytes, seconds.
#pragma once

#include <vector>

#include "collective/plan/chunk_layout.hpp"
#include "collective/plan/shape.hpp"
#include "collective/replay/ensemble.hpp"

namespace syncopate::collective::replay {

/// The ranges of chunks, the host of each rank (empty: one host), and the costs of messages.
struct PriceInputs {
  plan::ChunkLayout layout;
  std::vector<std::uint32_t> hosts;
  NetworkCost cost;
};

/// Everything in PlanPrice except the algorithm's name.
[[nodiscard]] PlanPrice price(const Ensemble& ensemble, const PriceInputs& inputs);
/// Whether every message costs the same, whichever ranks it connects, so that one program can stand for all: all ranks
/// share one host, or each has its own.
[[nodiscard]] bool are_alike(const std::vector<std::uint32_t>& hosts);

}  // namespace syncopate::collective::replay
