// Rows of the parameter server: merging the rounds of all runs, the bound, and how they are shown.
#include "bench/server/rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/rows.hpp"
#include "syncopate/error.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::bench {

double push_pull_bound(const ServerPlace& place, std::uint64_t bytes) {
  double busiest = 0;
  for (int host = 0; host < place.workers; ++host) {
    const int here = (place.servers - host + place.workers - 1) / place.workers;
    const int shares = place.servers - here + here * (place.workers - 1);
    busiest = std::max(busiest, static_cast<double>(shares) / place.servers);
  }
  return place.bits_per_s > 0 ? busiest * static_cast<double>(bytes) * 8 / place.bits_per_s : 0;
}

bool ServerRows::take(const std::string& line) try {
  const nlohmann::json raw = nlohmann::json::parse(line, nullptr, false);
  if (!raw.is_object() || !raw.contains("block_seconds")) return false;
  const std::string contender = raw.at("contender");
  const std::uint64_t bytes = raw.at("bytes");
  const std::vector<double> seconds = raw.at("block_seconds"), cpu_seconds = raw.at("block_cpu_seconds");
  const bool correct = raw.at("correct");
  if (seconds.empty() || cpu_seconds.empty()) throw Corrupt("it has no rounds");
  auto found = std::ranges::find_if(
      series_, [&](const Series& series) { return series.contender == contender && series.bytes == bytes; });
  if (found == series_.end()) found = series_.insert(found, {.contender = contender, .bytes = bytes});
  found->correct = found->correct && correct;
  found->seconds.insert(found->seconds.end(), seconds.begin(), seconds.end());
  found->cpu_seconds.insert(found->cpu_seconds.end(), cpu_seconds.begin(), cpu_seconds.end());
  return true;
} catch (const nlohmann::json::exception& error) {
  throw Corrupt(fmt::format("a contender's row is damaged: {}", error.what()));
}

bool ServerRows::all_correct() const { return std::ranges::all_of(series_, &Series::correct); }

std::vector<ServerRows::Series> ServerRows::ordered() const {
  std::vector<Series> order = series_;
  std::ranges::stable_sort(order, {}, &Series::bytes);
  return order;
}

std::vector<nlohmann::json> ServerRows::json() const {
  std::vector<nlohmann::json> rows;
  for (const Series& row : ordered()) {
    const double bound = push_pull_bound(place_, row.bytes);
    rows.push_back({{"workers", place_.workers},
                    {"servers", place_.servers},
                    {"bytes", row.bytes},
                    {"contender", row.contender},
                    {"push_pull_seconds", timing(row.seconds)},
                    {"bound_seconds", bound > 0 ? nlohmann::json(bound) : nlohmann::json()},
                    {"ratio", bound > 0 ? nlohmann::json(median(row.seconds) / bound) : nlohmann::json()},
                    {"cpu_seconds", median(row.cpu_seconds)},
                    {"correct", row.correct}});
  }
  return rows;
}

std::string ServerRows::table() const {
  std::string text = fmt::format("{:>10}  {:<10}{:>32}{:>10}{:>12}{:>8}\n", "bytes", "contender", "median (min .. max)",
                                 "x bound", "cpu/round", "answer");
  for (const Series& row : ordered()) {
    const double bound = push_pull_bound(place_, row.bytes), typical = median(row.seconds);
    const auto [low, high] = std::ranges::minmax(row.seconds);
    text += fmt::format(
        "{:>10}  {:<10}{:>32}{:>10}{:>12}{:>8}\n", format_bytes(static_cast<double>(row.bytes)), row.contender,
        fmt::format("{} ({} .. {})", format_seconds(typical), format_seconds(low), format_seconds(high)),
        bound > 0 ? fmt::format("{:.3f}", typical / bound) : "-", format_seconds(median(row.cpu_seconds)),
        row.correct ? "right" : "WRONG");
  }
  return text;
}

}  // namespace syncopate::tools::bench
