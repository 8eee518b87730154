// Prices of plans, read off a replay.
#include "collective/plan/price.hpp"

#include <algorithm>
#include <cmath>

#include "collective/plan/replay.hpp"

namespace syncopate::collective::plan {

namespace {

std::uint64_t most_sent(const std::vector<Plan>& plans, const ChunkLayout& layout) {
  std::uint64_t most = 0;
  for (const Plan& plan : plans) {
    std::uint64_t sent = 0;
    for (const PlanStep& step : plan.steps)
      if (step.act == Act::send) sent += layout.run(step).size();
    most = std::max(most, sent);
  }
  return most;
}

}  // namespace

PlanPrice price(const std::vector<Plan>& plans, const PriceInputs& inputs) {
  // Even parts, as on an ideal network: a byte more or less would let ranks drift out of step.
  const double chunk = static_cast<double>(inputs.layout.count) / inputs.layout.chunks;
  const auto seconds = [&](std::uint32_t from, std::uint32_t to, const PlanStep& arrival) {
    const bool one_host = inputs.hosts.empty() || inputs.hosts[from] == inputs.hosts[to];
    const LinkCost& link = one_host ? inputs.cost.intra : inputs.cost.inter;
    const double gamma = arrival.act == Act::receive_reduce ? link.gamma_s_per_byte : 0;
    return link.alpha_s + chunk * arrival.chunk_count * (link.beta_s_per_byte + gamma);
  };
  PlanPrice price;
  price.rounds = static_cast<std::uint32_t>(std::lround(replay(plans, rounds_of).makespan));
  price.wire_bytes_per_rank = most_sent(plans, inputs.layout);
  price.predicted_s = replay(plans, seconds).makespan;
  return price;
}

}  // namespace syncopate::collective::plan
