// Text of a report: numbers as people read them.
#include "report/page/markup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ctime>

#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::report::page {
namespace {

constexpr const char* kDash = "–";
constexpr std::string_view kNarrowSpace = "\u202f";

}  // namespace

std::string decimal(double value, int digits) {
  if (!std::isfinite(value)) return kDash;
  std::string text = fmt::format("{:.{}f}", std::abs(value), digits);
  const auto point = std::min(text.find('.'), text.size());
  for (auto at = static_cast<std::ptrdiff_t>(point) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  const bool zero = text.find_first_not_of("0.") == std::string::npos;
  return value < 0 && !zero ? "−" + text : text;
}

std::string percent(double share) {
  if (!std::isfinite(share)) return kDash;
  const int digits = std::abs(share) < 0.0995 && share != 0 ? 1 : 0;
  return fmt::format("{}{}%", decimal(share * 100, digits), kNarrowSpace);
}

std::string percent_fine(double share) {
  return std::isfinite(share) ? fmt::format("{}{}%", decimal(share * 100, 1), kNarrowSpace) : kDash;
}

std::string bytes(double count) { return std::isfinite(count) ? format_bytes(count) : kDash; }

std::string counted(double count, std::string_view noun) {
  return fmt::format("{} {}{}", decimal(count), noun, count == 1 ? "" : "s");
}

std::string compact(double value) {
  if (!std::isfinite(value)) return kDash;
  const double size = std::abs(value);
  if (size >= 1e7 || (size > 0 && size < 1e-4)) return fmt::format("{:.2e}", value);
  return decimal(value, size >= 100 || size == 0 ? 0 : size >= 10 ? 1 : size >= 0.1 ? 3 : 5);
}

std::string TimeUnit::operator()(double seconds) const {
  return std::isfinite(seconds) ? fmt::format("{} {}", number(seconds), name) : kDash;
}

TimeUnit time_unit(double seconds) {
  if (!std::isfinite(seconds) || seconds >= 1) return {1, "s", seconds >= 10 ? 1 : 2};
  if (seconds >= 1e-3) return {1e3, "ms", seconds >= 0.1 ? 0 : seconds >= 1e-2 ? 1 : 2};
  return {1e6, "µs", 0};
}

TimeUnit time_unit(double largest, double smallest) {
  TimeUnit unit = time_unit(largest);
  const double value = smallest * unit.per_second;
  if (value > 0) unit.digits = std::max(unit.digits, value >= 99.5 ? 0 : value >= 9.95 ? 1 : value >= 0.995 ? 2 : 3);
  return unit;
}

std::string time_range(double first_s, double last_s, TimeUnit unit) {
  if (!std::isfinite(first_s) || !std::isfinite(last_s)) return kDash;
  while (unit.digits < 3 && unit.number(first_s) == unit.number(last_s)) ++unit.digits;
  return fmt::format("{} to {}", unit.number(first_s), unit(last_s));
}

std::string date(double unix_s) {
  if (!(unix_s >= 0 && unix_s < 253402300800)) return kDash;  // the year 10000
  const auto seconds = static_cast<std::time_t>(unix_s);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min);
}

std::string lasted(double seconds) {
  if (!(seconds >= 0 && seconds < 1e12)) return kDash;
  if (seconds < 99.95) return time_unit(seconds)(seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string rate(double per_second) {
  if (!std::isfinite(per_second)) return kDash;
  return per_second >= 100 ? decimal(per_second) : format_rate(per_second);
}

}  // namespace syncopate::tools::report::page
