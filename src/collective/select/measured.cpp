// Measured: interpolates between measured sizes, and extrapolates by cost laws.
#include "collective/select/measured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

std::string doubt_of_size(const NetworkCost& cost, int ranks, Collective collective, double bytes) {
  double last = 0;
  for (const MeasuredCost& entry : cost.measured)
    if (entry.collective == collective && !entry.table.empty()) last = std::max(last, entry.table.back().first);
  if (last == 0 || bytes <= last || ranks != cost.measured_ranks) return {};
  return fmt::format(
      "{} of {} exceeds the measured sizes: the timings end at {}; `syncopate fit --bytes` with larger sizes "
      "measures "
      "them",
      name_of(collective), format_bytes(bytes), format_bytes(last));
}

}  // namespace syncopate
