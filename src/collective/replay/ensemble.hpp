// Ensemble: the programs of all ranks of a group; one of them where the others are its rotations.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "collective/plan/program.hpp"

namespace syncopate::collective::replay {

/// Rank r's plan is a rotation of rank 0's where it does the same steps with peers r further and chunks r further: in a
/// ring, whatever one rank does, every rank does at the same time.
struct Ensemble {
  std::vector<plan::Program> programs;  ///< by rank; of rank 0 alone, where all plans are rotations of its plan
  std::uint32_t ranks = 0;

  [[nodiscard]] bool rotates() const noexcept { return programs.size() < ranks; }
};

/// A collective of so many ranks, and each rank's plan of it.
struct Plans {
  Collective collective = Collective::allreduce;
  std::uint32_t ranks = 1;
  std::function<Plan(std::uint32_t rank)> of;
};

/// The program of every rank.
[[nodiscard]] Ensemble whole_ensemble_of(const std::vector<Plan>& plans);
[[nodiscard]] Ensemble whole_ensemble_of(const Plans& plans);
/// Only rank 0's, where every rank's plan was compared with its rotation: 4096 plans of a ring take gigabytes.
[[nodiscard]] Ensemble ensemble_of(const Plans& plans);

/// The chunk (of one of the plan's vectors of `ranks` chunks) that is `by` further.
[[nodiscard]] constexpr std::uint32_t rotated_chunk(std::uint32_t chunk, std::uint32_t by, std::uint32_t ranks) {
  return chunk - chunk % ranks + (chunk % ranks + by) % ranks;
}

}  // namespace syncopate::collective::replay
