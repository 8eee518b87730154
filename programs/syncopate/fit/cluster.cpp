// Cluster file: converts timings to links, tables, and a description of their quality.
#include "fit/cluster.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "bench/rows.hpp"
#include "syncopate/error.hpp"
#include "syncopate/tooling/units.hpp"

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

/// Timings, each with the error of the links that were fitted to it.
class Judgement final {
 public:
  void add(const std::vector<Timing>& timings, const LinkFit& links) {
    for (std::size_t i = 0; i < timings.size(); ++i) {
      const double error = std::abs(links.errors[i]);
      all_.push_back(error);
      by_size_[timings[i].bytes].push_back(error);
      SizeError& size = sizes_[timings[i].bytes];
      if (error >= size.worst) size = {timings[i].bytes, 0, error, timings[i].collective, timings[i].algorithm};
    }
  }

  void write(ClusterFit& fit) const {
    for (const auto& [bytes, size] : sizes_) {
      fit.errors.push_back(size);
      fit.errors.back().median = bench::median(by_size_.at(bytes));
    }
    fit.median_of_links = bench::median(all_);
    fit.worst_of_links = std::ranges::max(all_);
  }

 private:
  std::vector<double> all_;
  std::map<std::uint64_t, std::vector<double>> by_size_;
  std::map<std::uint64_t, SizeError> sizes_;
};

std::string text_of(const char* where, const LinkCost& link) {
  return fmt::format("links {} hosts: {} to start, {:.3g} s per byte ({:.3g} Gbit/s), {:.3g} s per byte reduced\n",
                     where, format_seconds(link.alpha_s), link.beta_s_per_byte,
                     link.beta_s_per_byte > 0 ? 8e-9 / link.beta_s_per_byte : 0, link.gamma_s_per_byte);
}

}  // namespace

ClusterFit fit_cluster(const Measured& measured) {
  ClusterFit fit{.links = links_of(measured.all), .cpu_s_per_byte = cpu_per_byte(measured.all)};
  Judgement judgement;
  if (measured.within.empty() && measured.between.empty()) {
    const bool is_one_host = measured.all.front().ranks <= measured.ranks_per_host;
    (is_one_host ? fit.intra : fit.inter) = fit.links.link;
    judgement.add(measured.all, fit.links);
  } else {  // one link for both kinds describes neither
    for (const auto& [timings, link] : {std::pair(&measured.within, &fit.intra), {&measured.between, &fit.inter}}) {
      if (timings->empty()) continue;
      const LinkFit links = links_of(*timings);
      *link = links.link;
      judgement.add(*timings, links);
    }
  }
  judgement.write(fit);
  return fit;
}

nlohmann::json cluster_file(const Measured& measured, const ClusterFit& fit) {
  nlohmann::json costs = nlohmann::json::object(), links = nlohmann::json::object();
  for (const Timing& timing : measured.all)
    costs[timing.collective][timing.algorithm]["table"].push_back({timing.bytes, timing.seconds});
  if (fit.inter) links["inter"] = json_of(*fit.inter);
  if (fit.intra) links["intra"] = json_of(*fit.intra);
  nlohmann::json codecs = nlohmann::json::object();
  for (const CodingCost& coding : measured.codecs)
    codecs[coding.codec] = {{"encode_s_per_byte", coding.encode_s_per_byte},
                            {"decode_s_per_byte", coding.decode_s_per_byte}};
  return {{"ranks", measured.all.front().ranks},
          {"ranks_per_host", measured.ranks_per_host},
          {"transport", measured.transport},
          {"memory", name_of(measured.memory)},
          {"links", links},
          {"links_worst_error", fit.worst_of_links},
          {"links_median_error", fit.median_of_links},
          {"cpu_s_per_byte", fit.cpu_s_per_byte},
          {"costs", costs},
          {"codecs", codecs}};
}

nlohmann::json errors_of(const ClusterFit& fit) {
  nlohmann::json rows = nlohmann::json::array();
  for (const SizeError& size : fit.errors)
    rows.push_back({{"bytes", size.bytes},
                    {"median", size.median},
                    {"worst", size.worst},
                    {"collective", size.collective},
                    {"algorithm", size.algorithm}});
  return rows;
}

std::string complaint_about(const Measured& measured, const ClusterFit& fit) {
  std::string sizes;
  std::size_t count = 0;
  for (const SizeError& size : fit.errors) {
    if (size.worst <= kTolerableLinkError) continue;
    sizes += fmt::format("{}{} by up to {:.0f} % ({} {}; median {:.0f} %)", count++ == 0 ? "" : ", ",
                         format_bytes(static_cast<double>(size.bytes)), 100 * size.worst, size.collective,
                         size.algorithm, 100 * size.median);
  }
  if (count == 0) return {};
  const int ranks = measured.all.front().ranks;
  return fmt::format(
      "the cost formula (alpha, beta, gamma) misses by more than {:.0f} % at {} of {} sizes: {}. On {} ranks plan and "
      "auto use the measured tables; for other numbers of ranks there is only the formula, and plan, simulate and "
      "groups warn about it",
      100 * kTolerableLinkError, count, fit.errors.size(), sizes, ranks);
}

std::string left_out(const Measured& measured, double limit_s) {
  if (measured.left_out.empty()) return {};
  std::vector<std::string> sizes;
  for (const std::uint64_t bytes : measured.left_out) sizes.push_back(format_bytes(static_cast<double>(bytes)));
  std::uint64_t last = 0;
  for (const Timing& timing : measured.all) last = std::max(last, timing.bytes);
  return fmt::format(
      "{} not measured, because that would not have ended within --limit {:g} seconds: the tables end at {}, and "
      "beyond it planners and auto extrapolate; give a longer --limit, a smaller --budget, or fewer --bytes",
      fmt::format("{} {}", fmt::join(sizes, ", "), sizes.size() == 1 ? "was" : "were"), limit_s,
      format_bytes(static_cast<double>(last)));
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
  text +=
      fmt::format("links' error {:.0f} % in the median, {:.0f} % at its worst; transport {}; CPU {:.3g} s per byte\n",
                  100 * fit.median_of_links, 100 * fit.worst_of_links, measured.transport, fit.cpu_s_per_byte);
  return text;
}

}  // namespace syncopate::tools::fit
