// Prices of plans, read off a replay.
#include <algorithm>
#include <cmath>

#include "collective/algorithm.hpp"
#include "collective/layout.hpp"
#include "collective/replay.hpp"

namespace syncopate {

namespace {

/// The chunks' lengths in bytes: an alltoall has two vectors.
collective::Layout layout_of(const PlanRequest& request, const Plan& plan) {
  if (request.collective == Collective::barrier) return {kBarrierBytes, plan.chunks, {}};
  return {request.collective == Collective::alltoall ? 2 * request.bytes : request.bytes, plan.chunks, {}};
}

std::uint64_t most_sent(const std::vector<Plan>& plans, const collective::Layout& layout) {
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

PlanPrice price_plans(const PlanRequest& request, const NetworkCost& cost) {
  const collective::Choice choice = collective::choose(request, cost);
  const std::vector<Plan> plans = plan_collective(request, cost);
  const collective::Layout layout = layout_of(request, plans[0]);
  // Even parts, as on an ideal network: a byte more or less would let ranks drift out of step.
  const double chunk = static_cast<double>(layout.count) / layout.chunks;
  const auto hosts = collective::hosts_of(request);
  const auto seconds = [&](std::uint32_t from, std::uint32_t to, const PlanStep& arrival) {
    const LinkCost& link = hosts.empty() || hosts[from] == hosts[to] ? cost.intra : cost.inter;
    const double gamma = arrival.act == Act::receive_reduce ? link.gamma_s_per_byte : 0;
    return link.alpha_s + chunk * arrival.chunk_count * (link.beta_s_per_byte + gamma);
  };
  PlanPrice price;
  price.algorithm = choice.algorithm->name;
  price.rounds = static_cast<std::uint32_t>(std::lround(collective::replay(plans, collective::rounds_of).makespan));
  price.wire_bytes_per_rank = most_sent(plans, layout);
  price.predicted_s = collective::replay(plans, seconds).makespan;
  return price;
}

}  // namespace syncopate
