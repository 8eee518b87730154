// Parsing and formatting of sizes and rates with units.
#include "syncopate/tooling/units.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>

#include "base/require.hpp"

namespace syncopate {

namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr double kKi = 1024, kMi = 1024 * kKi, kGi = 1024 * kMi, kTi = 1024 * kGi;
constexpr Unit kSizes[] = {{"", 1},      {"b", 1},    {"kib", kKi}, {"mib", kMi}, {"gib", kGi},
                           {"tib", kTi}, {"kb", 1e3}, {"mb", 1e6},  {"gb", 1e9},  {"tb", 1e12},
                           {"k", kKi},   {"m", kMi},  {"g", kGi},   {"t", kTi}};
constexpr Unit kCounts[] = {{"", 1}, {"k", 1e3}, {"m", 1e6}, {"g", 1e9}, {"ki", kKi}, {"mi", kMi}, {"gi", kGi}};
constexpr Unit kRates[] = {{"bit", 1}, {"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}};

/// The number of base units in `text`, or a negative value if it is not a number with one of the units.
double parse(std::string_view text, std::span<const Unit> units) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number) || number < 0) return -1;
  std::string unit(end, text.data() + text.size());
  std::ranges::transform(unit, unit.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto found = std::ranges::find(units, std::string_view(unit), &Unit::name);
  return found == units.end() ? -1 : number * found->factor;
}

}  // namespace

std::uint64_t parse_bytes(std::string_view text) {
  const double bytes = parse(text, kSizes);
  base::require(bytes >= 0 && bytes < 9e18 && bytes == std::floor(bytes),
                "size '{}' is not understood; allowed: whole numbers of bytes with a unit of B, KiB, MiB, GiB, TiB, "
                "KB, MB, GB or TB, such as 4, 64KiB, 25MB",
                text);
  return static_cast<std::uint64_t>(bytes);
}

std::uint64_t parse_count(std::string_view text) {
  const double count = parse(text, kCounts);
  base::require(count >= 0 && count < 9e18 && count == std::floor(count),
                "number '{}' is not understood; allowed: whole numbers with a unit of K, M, G, Ki, Mi or Gi, as 1000, "
                "25M, 16Mi",
                text);
  return static_cast<std::uint64_t>(count);
}

double parse_rate(std::string_view text) {
  if (text == "none") return 0;
  const double rate = parse(text, kRates);
  base::require(rate > 0,
                "rate '{}' is not understood; allowed: bits per second with a unit of bit, kbit, mbit or gbit, as "
                "200mbit, 2.5gbit; or none",
                text);
  return rate;
}

std::string format_bytes(double bytes) {
  if (bytes < 1024) return fmt::format("{:.0f} B", bytes);
  constexpr std::string_view kNames[] = {"KiB", "MiB", "GiB", "TiB"};
  std::size_t i = 0;
  for (bytes /= 1024; bytes >= 1024 && i + 1 < std::size(kNames); ++i) bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, bytes == std::floor(bytes) ? 0 : 1, kNames[i]);
}

std::string format_seconds(double seconds) {
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} us", seconds * 1e6);
}

std::string format_rate(double per_second) {
  const int digits = per_second >= 100 ? 0 : per_second >= 10 ? 1 : per_second >= 0.1 ? 2 : 4;
  return fmt::format("{:.{}f}", per_second, digits);
}

}  // namespace syncopate
