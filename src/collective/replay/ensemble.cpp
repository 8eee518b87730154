// Ensemble: compares every rank's plan with the rotation of rank 0's plan.
#include "collective/replay/ensemble.hpp"

#include <algorithm>
#include <utility>

#include "collective/plan/shape.hpp"

namespace syncopate::collective::replay {

namespace {

/// Plans can be rotations only if the collective treats all ranks alike and the chunks correspond to ranks.
bool may_rotate(const Plans& plans, const Plan& plan) {
  const std::uint32_t vectors = plan::swaps(plans.collective) ? 2 : 1;
  return plans.ranks > 1 && !plan::has_root(plans.collective) && plan.chunks == vectors * plans.ranks &&
         std::ranges::all_of(plan.steps, [](const PlanStep& step) { return step.chunk_count == 1; });
}

bool is_rotation(const Plan& plan, const Plan& first, std::uint32_t ranks, std::uint32_t rank) {
  return plan.chunks == first.chunks &&
         std::ranges::equal(plan.steps, first.steps, [&](const PlanStep& step, const PlanStep& model) {
           PlanStep rotated = model;
           rotated.peer = rotated_chunk(model.peer, rank, ranks);
           rotated.first_chunk = rotated_chunk(model.first_chunk, rank, ranks);
           return step == rotated;
         });
}

}  // namespace

Ensemble whole_ensemble_of(const std::vector<Plan>& plans) {
  Ensemble ensemble{.programs = {}, .ranks = static_cast<std::uint32_t>(plans.size())};
  for (const Plan& plan : plans) ensemble.programs.push_back(plan::compile(plan));
  return ensemble;
}

Ensemble whole_ensemble_of(const Plans& plans) {
  Ensemble ensemble{.programs = {}, .ranks = plans.ranks};
  for (std::uint32_t rank = 0; rank < plans.ranks; ++rank) ensemble.programs.push_back(plan::compile(plans.of(rank)));
  return ensemble;
}

Ensemble ensemble_of(const Plans& plans) {
  Plan first = plans.of(0);
  bool rotates = may_rotate(plans, first);
  for (std::uint32_t rank = 1; rank < plans.ranks && rotates; ++rank)
    rotates = is_rotation(plans.of(rank), first, plans.ranks, rank);
  if (!rotates) return whole_ensemble_of(plans);
  Ensemble ensemble{.programs = {}, .ranks = plans.ranks};
  ensemble.programs.push_back(plan::compile(std::move(first)));
  return ensemble;
}

}  // namespace syncopate::collective::replay
