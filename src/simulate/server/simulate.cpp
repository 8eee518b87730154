// Simulation of a parameter server: one row per number of ranks and flow, averaged over steps that repeat.
#include <algorithm>

#include "base/require.hpp"
#include "schedule/evaluate.hpp"
#include "simulate/candidate.hpp"
#include "simulate/costs.hpp"
#include "simulate/server/steps.hpp"

namespace syncopate {

namespace {

using simulate::server::Ports;
using simulate::server::RunTimes;
using simulate::server::Scene;
using simulate::server::Travelled;

void check_servers(const Cluster& cluster, const SimulateOptions& options) {
  constexpr auto kMost = static_cast<int>(syncopate::server::kMostWorkers);
  base::require(cluster.ranks >= 1 && cluster.ranks <= kMost, "{} ranks; allowed: 1 to {}", cluster.ranks, kMost);
  base::require(options.noise >= 0 && options.noise <= 2, "noise is {}; allowed: 0 to 2", options.noise);
  base::require(options.steps >= 1 && options.steps <= 100000, "steps is {}; allowed: 1 to 100000", options.steps);
  base::require(cluster.inter.has_value(),
                "a parameter server's messages need links, but the cluster has none; add \"inter\"");
  base::require(!simulate::costs::is_measured(cluster),
                "a parameter server's messages need links, but the cluster has measured costs of an all-reduce; "
                "allowed: a cluster without \"costs\"");
  base::require(!options.segments && !options.law && !options.timeline,
                "exchange parameter_server has neither segments nor a timeline; leave them out");
  for (const Handicap& slow : options.slow_ranks) simulate::require_slow_rank(slow, cluster.ranks);
}

Ports::Links links_of(const Scene& scene, const Cluster& cluster, const SimulateOptions& options) {
  Ports::Links links{*cluster.inter, cluster.intra, std::vector<double>(scene.hosts, 1)};
  for (const Handicap& slow : options.slow_hosts) {
    base::require(slow.which >= 0 && static_cast<std::size_t>(slow.which) < scene.hosts && slow.factor > 0,
                  "host {} is {} times as slow; allowed: hosts 0 to {}, factors above 0", slow.which, slow.factor,
                  scene.hosts - 1);
    links.slowness[static_cast<std::size_t>(slow.which)] *= slow.factor;
  }
  return links;
}

/// Steps to skip, and to average: with staleness s traffic repeats every s + 1 steps.
struct Window {
  std::size_t warm_up = 0, counted = 0;
};

Window window_of(const Scene& scene, const SimulateOptions& options) {
  const syncopate::server::Rule rule = syncopate::server::rule_of(scene.setup.consistency, scene.setup.catalogue);
  const auto period = static_cast<std::size_t>(std::clamp<std::int64_t>(rule.staleness.value_or(0), 0, 100)) + 1;
  const std::size_t wanted = simulate::is_random(options) ? static_cast<std::size_t>(options.steps) : 6;
  return {std::max<std::size_t>(3, 2 * period), (wanted + period - 1) / period * period};
}

}  // namespace

std::vector<ServerSimulation> simulate_servers(const Profile& profile, const Cluster& cluster,
                                               const SimulateOptions& options, const ServerScene& asked) {
  const schedule::Timeline timeline = simulate::timeline_of(profile);
  const simulate::Workload workload(timeline, options);
  const double compute_s = schedule::ready_times(timeline).front();
  std::vector<std::string> flows = options.policies;
  if (flows.empty()) flows.assign(std::begin(syncopate::server::kFlows), std::end(syncopate::server::kFlows));
  std::vector<ServerSimulation> rows;
  for (const int ranks : options.ranks.empty() ? std::vector<int>{cluster.ranks} : options.ranks) {
    Cluster here = cluster;
    here.ranks = ranks;
    check_servers(here, options);
    for (const std::string& flow : flows) {
      if (options.progress) options.progress(flow, ranks);
      const Scene scene = simulate::server::scene_of(timeline, here, asked, flow);
      const auto [warm_up, counted] = window_of(scene, options);
      const RunTimes times =
          run_steps(scene, workload, links_of(scene, here, options), static_cast<int>(warm_up + counted));
      const double steps = static_cast<double>(counted), each = steps * ranks;
      const double seconds = (times.ended_s.back() - times.ended_s[warm_up - 1]) / steps;
      const Travelled &end = times.travelled.back(), &begin = times.travelled[warm_up - 1];
      rows.push_back({.training = {.policy = flow,
                                   .ranks = ranks,
                                   .algorithm = "parameter_server",
                                   .iteration_s = seconds,
                                   .compute_s = compute_s,
                                   .exposed_s = seconds - compute_s,
                                   .speedup = seconds > 0 ? ranks * compute_s / seconds : 0,
                                   .timeline = {}},
                      .servers = static_cast<int>(scene.servers),
                      .pushed_bytes = (end.pushed_bytes - begin.pushed_bytes) / each,
                      .pulled_bytes = (end.pulled_bytes - begin.pulled_bytes) / each,
                      .exchanges = (end.pushes - begin.pushes) / (each * static_cast<double>(scene.blocks)),
                      .load_variation = scene.load_variation});
    }
  }
  return rows;
}

}  // namespace syncopate
