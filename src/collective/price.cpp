// Prices and pictures of plans, both read off one replay.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "collective/algorithm.hpp"
#include "collective/replay.hpp"

namespace syncopate {

namespace {

double bytes_of(const PlanStep& step, const PlanRequest& request, std::uint32_t chunks) {
  const std::size_t begin = even_part(request.bytes, chunks, step.first_chunk).begin;
  const std::size_t end = even_part(request.bytes, chunks, step.first_chunk + step.chunk_count - 1).end;
  return static_cast<double>(end - begin);
}

std::uint64_t most_sent(const std::vector<Plan>& plans, const PlanRequest& request) {
  double most = 0;
  for (const Plan& plan : plans) {
    double sent = 0;
    for (const PlanStep& step : plan.steps)
      if (step.act == Act::send) sent += bytes_of(step, request, plan.chunks);
    most = std::max(most, sent);
  }
  return static_cast<std::uint64_t>(most);
}

double units(const PlanStep& step) { return step.chunk_count; }

/// One cell: what a rank does in a round, e.g. "3>1 +0<0" = sends chunk 3 to rank 1, adds chunk 0 from rank 0.
std::string cell(const std::string& before, std::string_view sign, std::uint32_t chunk, std::uint32_t peer) {
  return fmt::format("{}{}{}{}{}", before, before.empty() ? "" : " ", chunk, sign, peer);
}

}  // namespace

PlanPrice price_plans(const PlanRequest& request, const LinkCost& cost) {
  const std::vector<Plan> plans = plan_collective(request);
  const auto seconds = [&](const PlanStep& step) {
    const double bytes = bytes_of(step, request, plans[0].chunks);
    const double gamma = step.act == Act::receive_reduce ? cost.gamma_s_per_byte : 0;
    return cost.alpha_s + bytes * (cost.beta_s_per_byte + gamma);
  };
  PlanPrice price;
  price.algorithm = collective::select(request.algorithm, request, LinkCost{}).name;
  price.rounds = static_cast<std::uint32_t>(std::lround(collective::replay(plans, units).makespan));
  price.wire_bytes_per_rank = most_sent(plans, request);
  price.predicted_s = collective::replay(plans, seconds).makespan;
  return price;
}

std::string draw_plans(const PlanRequest& request) {
  const std::vector<Plan> plans = plan_collective(request);
  const collective::Replay run = collective::replay(plans, units);
  const auto rounds = static_cast<std::size_t>(std::lround(run.makespan));
  std::vector<std::vector<std::string>> cells(plans.size(), std::vector<std::string>(rounds));
  for (const collective::Transfer& transfer : run.transfers) {
    const PlanStep& in = plans[transfer.to].steps[transfer.receive_step];
    const auto round = static_cast<std::size_t>(std::lround(transfer.begin));
    auto& out_cell = cells[transfer.from][round];
    auto& in_cell = cells[transfer.to][round];
    out_cell = cell(out_cell, ">", in.first_chunk, transfer.to);
    in_cell = cell(in_cell, in.act == Act::receive_reduce ? "+" : "<", in.first_chunk, transfer.from);
  }
  std::size_t width = 5;
  for (const auto& row : cells)
    for (const std::string& text : row) width = std::max(width, text.size());
  std::string picture = fmt::format(
      "{} ({}), {} ranks, {} chunks; c>r: sends chunk c to rank r, c<r: receives it from "
      "rank r, c+r: adds it\n",
      name_of(request.collective), request.algorithm, plans.size(), plans[0].chunks);
  picture += fmt::format("{:>6} ", "round");
  for (std::size_t round = 0; round < rounds; ++round) picture += fmt::format("| {:<{}} ", round + 1, width);
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    picture += fmt::format("\n{:>6} ", fmt::format("rank {}", rank));
    for (const std::string& text : cells[rank]) picture += fmt::format("| {:<{}} ", text, width);
  }
  return picture + "\n";
}

}  // namespace syncopate
