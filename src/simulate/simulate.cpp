// Simulate: selects the ranks that need a timeline of their own, times their exchanges, makes a row per policy.
#include "syncopate/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/require.hpp"
#include "simulate/costs.hpp"
#include "simulate/exchange.hpp"
#include "simulate/training.hpp"

namespace syncopate {

namespace {

using simulate::Agreement;
using simulate::Channel;

constexpr std::string_view kDear = "dear";

std::vector<std::string> labels_of(const SimulateOptions& options) {
  if (!options.policies.empty()) return options.policies;
  std::vector<std::string> labels;
  for (const schedule::Policy* policy : options.catalogue.policies()) labels.emplace_back(policy->name);
  labels.emplace_back("fusion:ddp");
  labels.emplace_back(kDear);
  return labels;
}

void check(const Cluster& cluster, const SimulateOptions& options) {
  base::require(cluster.ranks >= 1 && cluster.ranks <= 65536, "{} ranks; allowed: 1 to 65536", cluster.ranks);
  base::require(options.noise >= 0 && options.noise <= 2, "noise is {}; allowed: 0 to 2", options.noise);
  base::require(options.steps >= 1 && options.steps <= 100000, "steps is {}; allowed: 1 to 100000", options.steps);
  const int hosts = (cluster.ranks + cluster.ranks_per_host - 1) / cluster.ranks_per_host;
  for (const Handicap& slow : options.slow_ranks) simulate::require_slow_rank(slow, cluster.ranks);
  for (const Handicap& slow : options.slow_hosts)
    base::require(slow.which >= 0 && slow.which < hosts && slow.factor > 0,
                  "host {} is {} times as slow; allowed: hosts 0 to {}, factors above 0", slow.which, slow.factor,
                  hosts - 1);
  base::require(!options.segments ||
                    (cluster.ranks <= kMostSegmentedRanks && cluster.inter && !simulate::costs::is_measured(cluster)),
                "segments need a cluster with links, without measured costs, and at most {} ranks; it has {}",
                kMostSegmentedRanks, cluster.ranks);
  base::require(!options.law || (!options.segments && options.slow_hosts.empty()),
                "an exchange with a codec needs cost laws; allowed: no segments and no slow hosts");
  base::require(options.slow_hosts.empty() || (cluster.inter && !simulate::costs::is_measured(cluster)),
                "slow hosts need a cluster with links, not with measured costs of an all-reduce");
}

/// A cluster with its timelines and costs.
struct Scene {
  Channel channel;
  Agreement agreement;
  std::size_t timelines = 1;
};

/// If all ranks do the same at the same time, one timeline and the cost law are enough. This holds with one rank per
/// host, or for algorithms that send to one neighbour only, because then no two messages share a port.
bool is_uniform(const Cluster& cluster, const SimulateOptions& options) {
  const bool is_equal = options.noise == 0 && options.slow_ranks.empty() && options.slow_hosts.empty();
  const bool shares_ports =
      cluster.ranks_per_host > 1 && cluster.ranks > cluster.ranks_per_host && cluster.algorithm != "ring";
  return is_equal && (!shares_ports || options.segments || simulate::costs::is_measured(cluster));
}

struct Clusters {
  const Cluster &given, &priced;
};

/// An agreement is a single segment: its price is the same in both modes.
Scene by_cost(const Clusters& clusters, std::uint64_t bytes, std::size_t timelines) {
  const Cluster& cluster = clusters.priced;
  const schedule::Cost whole = simulate::costs::cost_of_cluster(cluster, bytes);
  const schedule::Cost scatter = simulate::costs::cost_of_half(cluster, Collective::reduce_scatter, bytes);
  const schedule::Cost gather = simulate::costs::cost_of_half(cluster, Collective::allgather, bytes);
  return {[=](Collective collective, std::uint64_t size, const std::vector<double>& called_s) {
            const schedule::Cost& cost = collective == Collective::allreduce   ? whole
                                         : collective == Collective::allgather ? gather
                                                                               : scatter;
            const double end_s = *std::ranges::max_element(called_s) + cost(static_cast<double>(size));
            return std::vector<double>(called_s.size(), end_s);
          },
          [agreement_s = simulate::costs::agreement_s(clusters.given)](const std::vector<double>& entered_s) {
            return std::vector<double>(entered_s.size(), *std::ranges::max_element(entered_s) + agreement_s);
          },
          timelines};
}

Scene by_messages(const Cluster& cluster, const SimulateOptions& options) {
  simulate::Network network = simulate::network_of(cluster);
  if (!options.slow_hosts.empty()) network.slowness.assign(network.hosts(), 1);
  for (const Handicap& slow : options.slow_hosts) network.slowness[static_cast<std::size_t>(slow.which)] *= slow.factor;
  using enum simulate::Exchanger::Messages;
  const auto exchanger = std::make_shared<simulate::Exchanger>(network, options.segments ? segments : whole);
  return {[exchanger, algorithm = cluster.algorithm](Collective collective, std::uint64_t bytes,
                                                     const std::vector<double>& called_s) {
            const bool is_whole = collective == Collective::allreduce;
            const std::string by = is_whole ? algorithm : simulate::costs::algorithm_of_half(algorithm, collective);
            return exchanger->run({collective, by, bytes}, called_s);
          },
          [exchanger](const std::vector<double>& entered_s) {
            return exchanger->run({Collective::allreduce, "auto", simulate::costs::kAgreedBytes}, entered_s);
          },
          static_cast<std::size_t>(cluster.ranks)};
}

/// The cluster that policies and uniform ranks use: if messages are cut into segments, or exchanges follow a law, its
/// costs include that.
Cluster priced(Cluster cluster, std::uint64_t bytes, const SimulateOptions& options) {
  if (options.segments) cluster.costs = simulate_costs(cluster, bytes);
  return options.law ? with_exchange(cluster, options.law(cluster.ranks, cluster.ranks_per_host), bytes) : cluster;
}

Scene scene_of(const Clusters& clusters, std::uint64_t bytes, const SimulateOptions& options) {
  const Cluster& cluster = clusters.given;
  if (is_uniform(cluster, options)) return by_cost(clusters, bytes, 1);
  if (options.law) return by_cost(clusters, bytes, static_cast<std::size_t>(cluster.ranks));
  if (simulate::costs::is_measured(cluster) || !cluster.inter)
    return by_cost({cluster, cluster}, bytes, static_cast<std::size_t>(cluster.ranks));
  return by_messages(cluster, options);
}

/// The part of a step that is not computing. Sums in another order leave a residue of rounding, which counts as 0.
double exposed_s(double seconds, double compute_s) {
  const double exposed = seconds - compute_s;
  return std::abs(exposed) < 1e-12 * seconds ? 0 : exposed;
}

/// Mean length of the steps after the first `warm_up` ones.
double mean_step_s(const std::vector<double>& ends, std::size_t warm_up) {
  const double begin_s = warm_up == 0 ? 0 : ends[warm_up - 1];
  return (ends.back() - begin_s) / static_cast<double>(ends.size() - warm_up);
}

/// The algorithm of the exchanges; dear's two halves may have two.
std::string algorithm_of(const std::string& label, const Cluster& cluster) {
  if (label != kDear) return cluster.algorithm;
  const std::string scatter = simulate::costs::algorithm_of_half(cluster.algorithm, Collective::reduce_scatter);
  const std::string gather = simulate::costs::algorithm_of_half(cluster.algorithm, Collective::allgather);
  return scatter == gather ? scatter : scatter + ", " + gather;
}

double step_s(const std::string& label, const simulate::Training& training, const Cluster& cluster,
              const SimulateOptions& options) {
  const std::uint64_t bytes = bytes_of(training.timeline, {0, training.timeline.layers.size() - 1});
  const schedule::Cost cost = simulate::costs::cost_of_cluster(cluster, bytes);
  const int steps = simulate::is_random(options) ? options.steps : 1;
  if (label == kDear) {
    const auto fused = simulate::candidate_of("fusion", {.fusion_bytes = 25 << 20}).partition(training.timeline, cost);
    return mean_step_s(run_dear(training, fused, steps + 2), 2);  // the first step has no all-gather
  }
  const simulate::Candidate candidate =
      simulate::candidate_of(label, {.fusion_bytes = options.fusion_bytes, .ranks = cluster.ranks}, options.catalogue);
  if (candidate.decides_late()) return mean_step_s(run_online(training, steps), 0);
  return mean_step_s(run_partition(training, candidate.partition(training.timeline, cost), steps), 0);
}

}  // namespace

std::vector<Simulation> simulate_training(const Profile& profile, const Cluster& cluster,
                                          const SimulateOptions& options) {
  const schedule::Timeline timeline = simulate::timeline_of(profile);
  const simulate::Workload workload(timeline, options);
  const double compute_s = schedule::ready_times(timeline).front();
  std::vector<Simulation> rows;
  for (const int ranks : options.ranks.empty() ? std::vector<int>{cluster.ranks} : options.ranks) {
    Cluster here = cluster;
    here.ranks = ranks;
    if (ranks != cluster.ranks) here.costs.clear();  // measured on another number of ranks
    check(here, options);
    const std::uint64_t bytes = bytes_of(timeline, {0, timeline.layers.size() - 1});
    const Cluster seen = priced(here, bytes, options);  // with the costs of exchanges
    const Scene scene = scene_of({here, seen}, bytes, options);
    simulate::Training training{.timeline = timeline,
                                .workload = workload,
                                .channel = scene.channel,
                                .agreement = scene.agreement,
                                .ranks = scene.timelines,
                                .cpu_s_per_byte = seen.cpu_s_per_byte};
    for (const std::string& label : labels_of(options)) {
      if (options.progress) options.progress(label, ranks);
      simulate::SpanRecorder recorder;
      training.recorder = options.timeline ? &recorder : nullptr;
      const double seconds = step_s(label, training, seen, options);
      rows.push_back({.policy = label,
                      .ranks = ranks,
                      .algorithm = algorithm_of(label, here),
                      .iteration_s = seconds,
                      .compute_s = compute_s,
                      .exposed_s = exposed_s(seconds, compute_s),
                      .speedup = ranks * compute_s / seconds,
                      .timeline = recorder.last_step()});
    }
  }
  return rows;
}

}  // namespace syncopate
