// Prices: replays the programs of all ranks, or rank 0's alone if the others are rotations of it.
#include "collective/replay/price.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "collective/plan/shape.hpp"
#include "collective/replay/replay.hpp"

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

namespace {

using plan::ChunkLayout;

std::uint64_t sent_by(const Plan& plan, const ChunkLayout& layout, std::uint32_t rotation, std::uint32_t ranks) {
  std::uint64_t sent = 0;
  for (PlanStep step : plan.steps) {
    if (step.act != Act::send) continue;
    if (rotation > 0) step.first_chunk = rotated_chunk(step.first_chunk, rotation, ranks);
    sent += layout.run(step).size();
  }
  return sent;
}

/// The payload of the rank that sends the most. Chunks may be uneven, so every rotation is counted.
std::uint64_t most_sent(const Ensemble& ensemble, const ChunkLayout& layout) {
  std::uint64_t most = 0;
  for (std::uint32_t rank = 0; rank < ensemble.ranks; ++rank)
    most = std::max(most, ensemble.rotates() ? sent_by(ensemble.programs[0].plan, layout, rank, ensemble.ranks)
                                             : sent_by(ensemble.programs[rank].plan, layout, 0, ensemble.ranks));
  return most;
}

}  // namespace

bool are_alike(const std::vector<std::uint32_t>& hosts) {
  return hosts.empty() || *std::ranges::max_element(hosts) + 1 == hosts.size();
}

PlanPrice price(const Ensemble& ensemble, const PriceInputs& inputs) {
  // All chunks count as equally long: differences of a byte would let the ranks of a ring drift apart in time.
  const double chunk = static_cast<double>(inputs.layout.count) / inputs.layout.chunks;
  const auto end_of = [&](const Message& message) {
    const bool one_host = inputs.hosts.empty() || inputs.hosts[message.arrival.peer] == inputs.hosts[message.to];
    const LinkCost& link = one_host ? inputs.cost.intra : inputs.cost.inter;
    const double gamma = message.arrival.act == Act::receive_reduce ? link.gamma_s_per_byte : 0;
    return message.begin + (link.alpha_s + chunk * message.arrival.chunk_count * (link.beta_s_per_byte + gamma));
  };
  PlanPrice price;
  price.rounds = static_cast<std::uint32_t>(std::lround(run(ensemble, {.end_of = end_of_round}).makespan));
  price.wire_bytes_per_rank = most_sent(ensemble, inputs.layout);
  price.predicted_s = run(ensemble, {.end_of = end_of}).makespan;
  return price;
}

}  // namespace syncopate::collective::replay
