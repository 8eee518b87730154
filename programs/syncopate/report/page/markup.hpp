// Text of a report: numbers as people read them, and the escaping of what stands between tags.
#pragma once

#include <string>
#include <string_view>

#include "svg/element.hpp"

namespace syncopate::tools::report::page {

using svg::escaped;
using svg::px;

/// `value` with `digits` decimals and commas between thousands; a dash when unknown.
[[nodiscard]] std::string decimal(double value, int digits = 0);
/// "31 %", with one decimal below 10 %; a dash when unknown.
[[nodiscard]] std::string percent(double share);
/// "92.3 %", as accuracies are given.
[[nodiscard]] std::string percent_fine(double share);
/// "35.2 MiB"; a dash when unknown.
[[nodiscard]] std::string bytes(double count);
/// "1 rank", "4 ranks".
[[nodiscard]] std::string counted(double count, std::string_view noun);
/// About three digits, whatever the size: losses, rates.
[[nodiscard]] std::string compact(double value);

/// One unit for a family of times, so that they can be compared at a glance.
struct TimeUnit {
  double per_second = 1;
  std::string_view name = "s";
  int digits = 2;

  [[nodiscard]] std::string number(double seconds) const { return decimal(seconds * per_second, digits); }
  [[nodiscard]] std::string operator()(double seconds) const;  ///< with the unit's name; a dash when unknown
};

/// The unit in which a time of `seconds` reads best: "1.61 s", "610 ms", "34.2 ms", "870 µs".
[[nodiscard]] TimeUnit time_unit(double seconds);
/// One unit for the times of a sentence or table: the unit of the largest, with the digits that the smallest needs.
[[nodiscard]] TimeUnit time_unit(double largest, double smallest);
/// "150 to 152 ms": with as many digits as distinguish the two, three at most; a dash when unknown.
[[nodiscard]] std::string time_range(double first_s, double last_s, TimeUnit unit);
/// "2026-11-25 00:31 UTC" of seconds since the Unix epoch.
[[nodiscard]] std::string date(double unix_s);
/// How long something lasted, to the second where it took minutes: "12.3 s", "4 min 10 s", "2 h 3 min".
[[nodiscard]] std::string lasted(double seconds);
/// A rate per second: "3,414", "41.2", "0.19".
[[nodiscard]] std::string rate(double per_second);

}  // namespace syncopate::tools::report::page
