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

double cpu_per_byte(const std::vector<Timing>& timings) {
  const Timing* largest = nullptr;
  for (const Timing& timing : timings)
    if (timing.collective == "allreduce" && (largest == nullptr || timing.bytes > largest->bytes ||
                                             (timing.bytes == largest->bytes && timing.seconds < largest->seconds)))
      largest = &timing;
  return largest == nullptr ? 0 : largest->cpu_seconds / largest->ranks / static_cast<double>(largest->bytes);
}

LinkFit links_of(const std::vector<Timing>& timings) {
  std::vector<Observation> observations;
  for (const Timing& timing : timings) observations.push_back({request_of(timing), timing.seconds});
  return fit_links(observations);
}

nlohmann::json json_of(const LinkCost& link) {
  return {{"alpha_s", link.alpha_s},
          {"beta_s_per_byte", link.beta_s_per_byte},
          {"gamma_s_per_byte", link.gamma_s_per_byte}};
}

std::string text_of(const char* where, const LinkCost& link) {
  return fmt::format("links {} hosts: {} to start, {:.3g} s per byte ({:.3g} Gbit/s), {:.3g} s per byte reduced\n",
                     where, format_seconds(link.alpha_s), link.beta_s_per_byte,
                     link.beta_s_per_byte > 0 ? 8e-9 / link.beta_s_per_byte : 0, link.gamma_s_per_byte);
}

}  // namespace

ClusterFit fit_cluster(const Measured& measured) {
  ClusterFit fit{.links = links_of(measured.all), .cpu_s_per_byte = cpu_per_byte(measured.all)};
  std::vector<LinkFit> fits{fit.links};
  if (measured.within.empty() && measured.between.empty()) {
    const bool is_one_host = measured.all.front().ranks <= measured.ranks_per_host;
    (is_one_host ? fit.intra : fit.inter) = fit.links.link;
  } else {
    fits.clear();  // one link for both kinds describes neither
    for (const auto& [timings, link] : {std::pair(&measured.within, &fit.intra), {&measured.between, &fit.inter}})
      if (!timings->empty()) *link = fits.emplace_back(links_of(*timings)).link;
  }
  for (const LinkFit& each : fits)
    for (const double error : each.errors) fit.worst_of_links = std::max(fit.worst_of_links, std::abs(error));
  return fit;
}

nlohmann::json cluster_file(const Measured& measured, const ClusterFit& fit) {
  nlohmann::json costs = nlohmann::json::object(), links = nlohmann::json::object();
  for (const Timing& timing : measured.all)
    costs[timing.collective][timing.algorithm]["table"].push_back({timing.bytes, timing.seconds});
  if (fit.inter) links["inter"] = json_of(*fit.inter);
  if (fit.intra) links["intra"] = json_of(*fit.intra);
  return {{"ranks", measured.all.front().ranks},
          {"ranks_per_host", measured.ranks_per_host},
          {"transport", measured.transport},
          {"links", links},
          {"links_worst_error", fit.worst_of_links},
          {"cpu_s_per_byte", fit.cpu_s_per_byte},
          {"costs", costs}};
}

std::string table_of(const Measured& measured, const ClusterFit& fit) {
  const std::vector<Timing>& timings = measured.all;
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
  if (fit.inter) text += text_of("between", *fit.inter);
  if (fit.intra) text += text_of("within", *fit.intra);
  text += fmt::format("transport {}; CPU {:.3g} s per byte\n", measured.transport, fit.cpu_s_per_byte);
  return text;
}

}  // namespace syncopate::tools::fit
