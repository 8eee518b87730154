// Rows of a benchmark: merging the blocks of all rounds, the bound, and how they are shown.
#include "bench/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <climits>

#include "syncopate/error.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::bench {
namespace {

std::string spread(const std::vector<double>& seconds) {
  const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  return fmt::format("{} ({} .. {})", format_seconds(median(seconds)), format_seconds(*least), format_seconds(*most));
}

/// Columns as wide as their widest cell, numbers to the right.
std::string aligned(const std::vector<std::vector<std::string>>& lines) {
  std::vector<std::size_t> widths(lines.front().size());
  for (const auto& cells : lines)
    for (std::size_t c = 0; c < cells.size(); ++c) widths[c] = std::max(widths[c], cells[c].size());
  std::string text;
  for (const auto& cells : lines) {
    for (std::size_t c = 0; c < cells.size(); ++c)
      text += c == 1 || c == 2 ? fmt::format("  {:<{}}", cells[c], widths[c])
                               : fmt::format("  {:>{}}", cells[c], widths[c]);
    text += '\n';
  }
  return text;
}

std::uint64_t count_of(const nlohmann::json& row, const char* key) {
  const nlohmann::json& value = row.at(key);
  if (!value.is_number_unsigned()) throw Corrupt(fmt::format("\"{}\" is not a whole number", key));
  return value.get<std::uint64_t>();
}

Series series_of(const nlohmann::json& raw) {
  Series row{.collective = raw.at("collective"),
             .algorithm = raw.at("algorithm"),
             .contender = raw.at("contender"),
             .transport = raw.at("transport"),
             .memory = raw.at("memory"),
             .dtype = raw.at("dtype"),
             .ranks = static_cast<int>(std::min<std::uint64_t>(count_of(raw, "ranks"), INT_MAX)),
             .bytes = count_of(raw, "bytes"),
             .correct = raw.at("correct"),
             .seconds = raw.at("block_seconds"),
             .cpu_seconds = raw.at("block_cpu_seconds")};
  if (row.seconds.empty() || row.cpu_seconds.empty()) throw Corrupt("it has no blocks");
  return row;
}

Series read(const nlohmann::json& raw) try { return series_of(raw); } catch (const nlohmann::json::exception& error) {
  throw Corrupt(fmt::format("a contender's row is damaged: {}", error.what()));
} catch (const Corrupt& error) {
  throw Corrupt(fmt::format("a contender's row is damaged: {}", error.what()));
}

}  // namespace

nlohmann::json timing(const std::vector<double>& seconds) {
  const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  return {{"median", median(seconds)}, {"min", *least}, {"max", *most}, {"n", seconds.size()}};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double bound_seconds(const Series& series, double bits_per_s) {
  const double hosts = static_cast<double>(series.ranks) / series.ranks_per_host;
  if (bits_per_s <= 0 || hosts < 2) return 0;
  const double line = static_cast<double>(series.bytes) * 8 / bits_per_s, beyond = (hosts - 1) / hosts * line;
  if (series.collective == "allreduce") return 2 * beyond;
  if (series.collective == "alltoall") return series.ranks_per_host * beyond;
  if (series.collective == "broadcast" || series.collective == "reduce") return line;
  return series.collective == "barrier" ? 0 : beyond;
}

bool Rows::add(const std::string& line) {
  const nlohmann::json raw = nlohmann::json::parse(line, nullptr, false);
  if (!raw.is_object() || !raw.contains("block_seconds")) return false;
  Series row = read(raw);
  row.ranks_per_host = ranks_per_host_;
  const auto same = [&](const Series& other) {
    return other.collective == row.collective && other.algorithm == row.algorithm && other.contender == row.contender &&
           other.memory == row.memory && other.bytes == row.bytes;
  };
  const auto found = std::find_if(series_.begin(), series_.end(), same);
  if (found == series_.end()) {
    series_.push_back(std::move(row));
    return true;
  }
  found->correct = found->correct && row.correct;
  found->seconds.insert(found->seconds.end(), row.seconds.begin(), row.seconds.end());
  found->cpu_seconds.insert(found->cpu_seconds.end(), row.cpu_seconds.begin(), row.cpu_seconds.end());
  return true;
}

bool Rows::all_correct() const {
  return std::all_of(series_.begin(), series_.end(), [](const Series& row) { return row.correct; });
}

std::vector<const Series*> Rows::ordered() const {
  std::vector<const Series*> order;
  for (const Series& row : series_) order.push_back(&row);
  std::stable_sort(order.begin(), order.end(), [](const Series* a, const Series* b) { return a->bytes < b->bytes; });
  return order;
}

std::vector<nlohmann::json> Rows::json() const {
  std::vector<nlohmann::json> rows;
  for (const Series* row : ordered()) {
    const double bound = bound_seconds(*row, bits_per_s_), typical = median(row->seconds);
    rows.push_back({{"collective", row->collective},
                    {"algorithm", row->algorithm},
                    {"contender", row->contender},
                    {"transport", row->transport},
                    {"memory", row->memory},
                    {"ranks", row->ranks},
                    {"ranks_per_host", row->ranks_per_host},
                    {"bytes", row->bytes},
                    {"dtype", row->dtype},
                    {"correct", row->correct},
                    {"seconds", timing(row->seconds)},
                    {"bytes_per_second", static_cast<double>(row->bytes) / typical},
                    {"bound_seconds", bound > 0 ? nlohmann::json(bound) : nlohmann::json()},
                    {"ratio", bound > 0 ? nlohmann::json(typical / bound) : nlohmann::json()},
                    {"cpu_seconds", median(row->cpu_seconds)}});
  }
  return rows;
}

std::string Rows::transport() const {
  const auto ours = std::ranges::find(series_, "syncopate", &Series::contender);
  return ours == series_.end() ? "" : ours->transport;
}

std::string Rows::table() const {
  std::vector<std::vector<std::string>> lines{
      {"bytes", "contender", "algorithm", "median (min .. max)", "MB/s", "x bound", "cpu/call", "answer"}};
  for (const Series* row : ordered()) {
    const double bound = bound_seconds(*row, bits_per_s_), typical = median(row->seconds);
    lines.push_back({format_bytes(static_cast<double>(row->bytes)),
                     row->memory == "group" ? row->contender + ", group's memory" : row->contender, row->algorithm,
                     spread(row->seconds), fmt::format("{:.1f}", static_cast<double>(row->bytes) / typical / 1e6),
                     bound > 0 ? fmt::format("{:.3f}", typical / bound) : "-", format_seconds(median(row->cpu_seconds)),
                     row->correct ? "right" : "WRONG"});
  }
  return aligned(lines);
}

}  // namespace syncopate::tools::bench
