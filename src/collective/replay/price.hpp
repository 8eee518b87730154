// Price: the cost of plans from a replay of all ranks' programs: rounds, bytes, seconds.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "collective/plan/program.hpp"
#include "collective/plan/shape.hpp"

namespace syncopate::collective::replay {

/// Rank r's plan is a rotation of rank 0's if it has the same steps with r added to every peer and every chunk, modulo
/// the number of ranks. In a ring all ranks then do the same at the same time.
struct Ensemble {
  std::vector<plan::Program> programs;  ///< by rank; if all plans are rotations, only rank 0's
  std::uint32_t ranks = 0;

  [[nodiscard]] bool rotates() const noexcept { return programs.size() < ranks; }
};

/// A collective's number of ranks and the plan of each rank.
struct Plans {
  Collective collective = Collective::allreduce;
  std::uint32_t ranks = 1;
  std::function<Plan(std::uint32_t rank)> of;
};

/// The program of every rank.
[[nodiscard]] Ensemble whole_ensemble_of(const std::vector<Plan>& plans);
[[nodiscard]] Ensemble whole_ensemble_of(const Plans& plans);
/// Only rank 0's program if every rank's plan is a rotation of it: 4096 plans of a ring would take gigabytes.
[[nodiscard]] Ensemble ensemble_of(const Plans& plans);

/// The chunk that is `by` further round the vector; a plan may have several vectors of `ranks` chunks each.
[[nodiscard]] constexpr std::uint32_t rotated_chunk(std::uint32_t chunk, std::uint32_t by, std::uint32_t ranks) {
  return chunk - chunk % ranks + (chunk % ranks + by) % ranks;
}

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
