// Cluster file: from timings to links, tables, and the words that say how good they are.
#include "fit/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "syncopate/error.hpp"
#include "syncopate/units.hpp"

namespace syncopate::tools::fit {

namespace {

PlanRequest request_of(const Timing& timing) {
  return {.collective = collective_named(timing.collective),
          .algorithm = timing.algorithm,
          .ranks = timing.ranks,
          .bytes = timing.bytes};
}

/// Back-to-back broadcasts and reductions overlap: small ones show a rate, not the latency that a price is about.
bool waits_for_all(const std::string& collective) { return collective != "broadcast" && collective != "reduce"; }

double cpu_per_byte(const std::vector<Timing>& timings) {
  const Timing* largest = nullptr;
  for (const Timing& timing : timings)
    if (timing.collective == "allreduce" && (largest == nullptr || timing.bytes > largest->bytes ||
                                             (timing.bytes == largest->bytes && timing.seconds < largest->seconds)))
      largest = &timing;
  return largest == nullptr ? 0 : largest->cpu_seconds / largest->ranks / static_cast<double>(largest->bytes);
}

}  // namespace

ClusterFit fit_cluster(const std::vector<Timing>& timings) {
  std::vector<Observation> observations;
  for (const Timing& timing : timings)
    observations.push_back({request_of(timing), timing.seconds, waits_for_all(timing.collective)});
  ClusterFit fit{.links = fit_links(observations), .cpu_s_per_byte = cpu_per_byte(timings)};
  for (std::size_t i = 0; i < timings.size(); ++i)
    if (observations[i].counts) fit.worst_of_links = std::max(fit.worst_of_links, std::abs(fit.links.errors[i]));
  return fit;
}

nlohmann::json cluster_file(const std::vector<Timing>& timings, const ClusterFit& fit, int ranks_per_host) {
  nlohmann::json costs = nlohmann::json::object();
  for (const Timing& timing : timings)
    costs[timing.collective][timing.algorithm]["table"].push_back({timing.bytes, timing.seconds});
  const LinkCost& link = fit.links.link;
  return {{"ranks", timings.front().ranks},
          {"ranks_per_host", ranks_per_host},
          {"links",
           {{"inter",
             {{"alpha_s", link.alpha_s},
              {"beta_s_per_byte", link.beta_s_per_byte},
              {"gamma_s_per_byte", link.gamma_s_per_byte}}}}},
          {"links_worst_error", fit.worst_of_links},
          {"cpu_s_per_byte", fit.cpu_s_per_byte},
          {"costs", costs}};
}

std::string table_of(const std::vector<Timing>& timings, const ClusterFit& fit) {
  struct Best {
    const Timing* timing = nullptr;
    double worst = 0;  ///< error of the links over this size's algorithms
  };
  std::vector<std::pair<std::string, std::uint64_t>> order;
  std::map<std::pair<std::string, std::uint64_t>, Best> cells;
  for (std::size_t i = 0; i < timings.size(); ++i) {
    const std::pair key{timings[i].collective, timings[i].bytes};
    const auto [cell, is_first] = cells.try_emplace(key);
    if (is_first) order.push_back(key);
    Best& best = cell->second;
    if (best.timing == nullptr || timings[i].seconds < best.timing->seconds) best.timing = &timings[i];
    if (std::abs(fit.links.errors[i]) > std::abs(best.worst)) best.worst = fit.links.errors[i];
  }
  std::string text = fmt::format("{:<16}{:>10}  {:<24}{:>12}{:>22}\n", "collective", "bytes", "fastest", "seconds",
                                 "links' worst error");
  for (const auto& key : order) {
    const Best& best = cells.at(key);
    text +=
        fmt::format("{:<16}{:>10}  {:<24}{:>12}{:>21.0f}%\n", key.first, format_bytes(static_cast<double>(key.second)),
                    best.timing->algorithm, format_seconds(best.timing->seconds), 100 * best.worst);
  }
  const LinkCost& link = fit.links.link;
  text += fmt::format(
      "links: {} to start, {:.3g} s per byte ({:.3g} Gbit/s), {:.3g} s per byte reduced; CPU {:.3g} s per byte\n",
      format_seconds(link.alpha_s), link.beta_s_per_byte, link.beta_s_per_byte > 0 ? 8e-9 / link.beta_s_per_byte : 0,
      link.gamma_s_per_byte, fit.cpu_s_per_byte);
  return text;
}

}  // namespace syncopate::tools::fit
