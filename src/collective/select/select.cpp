// Selection: the algorithm that a request names, or the fastest by measurements, then by cost laws.
#include "collective/select/select.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/named.hpp"
#include "base/require.hpp"
#include "collective/select/scope.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::collective::select {

namespace {

using Table = std::vector<std::pair<double, double>>;

constexpr double kLeastSeconds = 1e-12;  // a time of 0 has no logarithm

double between(const std::pair<double, double>& left, const std::pair<double, double>& right, double bytes) {
  const auto log_of = [](double value, double least) { return std::log(std::max(value, least)); };
  const double from = log_of(left.first, 1), to = log_of(right.first, 1);
  const double share = to > from ? (log_of(bytes, 1) - from) / (to - from) : 0;
  const double low = log_of(left.second, kLeastSeconds), high = log_of(right.second, kLeastSeconds);
  return std::exp(low + share * (high - low));
}

double beyond(const std::pair<double, double>& end, double bytes, const Law& law) {
  const double there = law(end.first);
  return there > 0 ? end.second * law(bytes) / there : end.second;
}

Collective of_even_parts(Collective collective) {
  if (collective == Collective::allgather_v) return Collective::allgather;
  return collective == Collective::alltoall_v ? Collective::alltoall : collective;
}

double seconds_by(const Table& table, double bytes, const Law& law) {
  if (bytes < table.front().first) return beyond(table.front(), bytes, law);
  if (bytes > table.back().first) return beyond(table.back(), bytes, law);
  const auto right = std::ranges::lower_bound(table, bytes, {}, [](const auto& point) { return point.first; });
  return right == table.begin() ? right->second : between(*(right - 1), *right, bytes);
}

}  // namespace

bool covers(const NetworkCost& cost, const Shape& shape) {
  if (cost.measured.empty() || static_cast<int>(shape.size) != cost.measured_ranks) return false;
  const auto per_host = static_cast<std::uint32_t>(std::max(cost.measured_ranks_per_host, 1));
  if (shape.hosts.empty()) return per_host >= shape.size;
  for (std::uint32_t rank = 0; rank < shape.size; ++rank)
    if (shape.hosts[rank] != rank / per_host) return false;
  return true;
}

std::optional<double> measured_seconds(const NetworkCost& cost, const Asked& asked, const Law& law) {
  const Collective collective = of_even_parts(asked.collective);
  const auto found = std::ranges::find_if(cost.measured, [&](const MeasuredCost& entry) {
    return entry.collective == collective && entry.algorithm == asked.algorithm;
  });
  if (found == cost.measured.end()) return std::nullopt;
  if (found->table.empty()) return found->a_s + found->b_s_per_byte * asked.bytes;
  return seconds_by(found->table, asked.bytes, law);
}

}  // namespace syncopate::collective::select

namespace syncopate {

namespace {

/// Where the last time of a table is below the one before, the text that reports it.
std::string fall_of(const MeasuredCost& entry) {
  if (entry.table.size() < 2) return {};
  const auto& [bytes, seconds] = entry.table.back();
  const auto& [bytes_before, seconds_before] = *(entry.table.end() - 2);
  if (seconds >= seconds_before) return {};
  return fmt::format("; the times{} fall from {} at {} to {} at {}, so larger sizes are uncertain",
                     entry.algorithm.empty() ? "" : " of " + entry.algorithm, format_seconds(seconds_before),
                     format_bytes(bytes_before), format_seconds(seconds), format_bytes(bytes));
}

}  // namespace

std::string warning_about_size(const NetworkCost& cost, int ranks, Collective collective, double bytes) {
  double last = 0;
  std::string falls;
  for (const MeasuredCost& entry : cost.measured) {
    if (entry.collective != collective || entry.table.empty()) continue;
    last = std::max(last, entry.table.back().first);
    falls += fall_of(entry);
  }
  if (last == 0 || bytes <= last || ranks != cost.measured_ranks) return {};
  constexpr double kMostExtrapolation = 100;
  const std::string guess =
      bytes <= kMostExtrapolation * last
          ? ""
          : fmt::format("; predicted times and their order are guesses at {:.0f} times the largest size", bytes / last);
  return fmt::format(
      "{} of {} exceeds the measured sizes: the timings end at {}{}{}; `syncopate fit --bytes` with larger sizes and a "
      "longer --limit measures them",
      name_of(collective), format_bytes(bytes), format_bytes(last), falls, guess);
}

std::vector<RankedAlgorithm> sort_algorithms(const PlanRequest& request, const NetworkCost& cost) {
  std::vector<RankedAlgorithm> ranked;
  for (const collective::Choice& choice :
       collective::select::rank_choices(collective::select::request_of_largest_part(request), cost))
    ranked.push_back({std::string(choice.algorithm->name), choice.law_s, choice.measured_s});
  return ranked;
}

}  // namespace syncopate

namespace syncopate::collective::select {

namespace {

void check(const LinkCost& link) {
  for (const double value : {link.alpha_s, link.beta_s_per_byte, link.gamma_s_per_byte})
    base::require(value >= 0 && value < 1e9, "a cost is {}; allowed: alpha, beta and gamma of at least 0", value);
}

void check(const PlanRequest& request, const NetworkCost& cost) {
  check_ranks(request);
  base::require(request.tuning.blocks <= 65536, "blocks is {}; allowed: 0 (the best) to 65536", request.tuning.blocks);
  base::require(request.root >= 0 && request.root < request.ranks, "root is {}; allowed: 0 to {} (ranks - 1)",
                request.root, request.ranks - 1);
  check(cost.inter);
  check(cost.intra);
}

collective::Shape shape_of(const PlanRequest& request) {
  return {.collective = request.collective,
          .size = static_cast<std::uint32_t>(request.ranks),
          .root = static_cast<std::uint32_t>(collective::plan::has_root(request.collective) ? request.root : 0),
          .hosts = hosts_of(request)};
}

collective::Load load_of(const PlanRequest& request, const collective::Shape& shape, const NetworkCost& cost) {
  const std::uint64_t bytes = request.collective == Collective::barrier ? kBarrierBytes : request.bytes;
  return {static_cast<double>(bytes), shape.hosts.empty() ? cost.intra : cost.inter, cost.intra};
}

std::vector<Choice> ranked(const PlanRequest& request, const Tuning& tuning, const NetworkCost& cost,
                           PortSharing& sharing) {
  const collective::Shape shape = shape_of(request);
  const collective::Load load = load_of(request, shape, cost);
  std::vector<Choice> choices = ranked(shape, tuning, load, Composed::with, sharing);
  if (shape.size > 1 && covers(cost, shape)) {
    for (Choice& choice : choices) {
      const Law law = [&](double bytes) {
        return resolved(*choice.algorithm, shape, tuning, {bytes, load.link, load.local}, sharing).law_s;
      };
      choice.measured_s = measured_seconds(cost, {shape.collective, choice.algorithm->name, load.bytes}, law);
    }
    sort_by_preference(choices, load.link);
  }
  return choices;
}

}  // namespace

void check_ranks(const PlanRequest& request) {
  base::require(request.ranks >= 1 && request.ranks <= 65536, "ranks is {}; allowed: 1 to 65536", request.ranks);
  base::require(request.hosts.empty() || request.hosts.size() == static_cast<std::size_t>(request.ranks),
                "hosts has {} numbers; allowed: none, or one per rank ({})", request.hosts.size(), request.ranks);
}

std::vector<std::uint32_t> hosts_of(const PlanRequest& request) {
  std::vector<std::uint32_t> hosts;
  std::map<std::uint32_t, std::uint32_t> numbers;
  const auto ranks = static_cast<std::uint32_t>(request.ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const std::uint32_t per_host = request.ranks_per_host == 0 ? ranks : request.ranks_per_host;
    const std::uint32_t given = request.hosts.empty() ? rank / per_host : request.hosts[rank];
    hosts.push_back(numbers.try_emplace(given, static_cast<std::uint32_t>(numbers.size())).first->second);
  }
  return numbers.size() > 1 ? hosts : std::vector<std::uint32_t>{};
}

Choice choose(const PlanRequest& request, const NetworkCost& cost, PortSharing& sharing) {
  check(request, cost);
  if (request.algorithm == "auto") return ranked(request, request.tuning, cost, sharing).front();
  const collective::Shape shape = shape_of(request);
  const collective::Load load = load_of(request, shape, cost);
  return resolved(algorithm_named(request.algorithm, request.collective), shape, request.tuning, load, sharing);
}

Choice choose(const PlanRequest& request, const NetworkCost& cost) {
  PortSharing sharing;
  return choose(request, cost, sharing);
}

std::vector<Choice> rank_choices(const PlanRequest& request, const NetworkCost& cost) {
  check(request, cost);
  PortSharing sharing;
  return ranked(request, {}, cost, sharing);
}

}  // namespace syncopate::collective::select
