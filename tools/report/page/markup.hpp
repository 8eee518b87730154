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

/// The unit in which a time of `seconds` reads best: "0.61 s", "34.2 ms", "870 µs".
[[nodiscard]] TimeUnit time_unit(double seconds);

}  // namespace syncopate::tools::report::page
