// Parameter: a number in the text after the colon of a component's name, as in `name:0.01,4`, and its limits.
#pragma once

#include <span>
#include <string_view>

namespace syncopate {

struct Parameter {
  std::string_view name;
  double above = 0;  ///< exclusive
  double most = 0;   ///< inclusive
  bool whole = false;
  bool or_zero = false;                       ///< 0 is also allowed
  std::span<const std::string_view> names{};  ///< not empty: it is written as one of these, and its number is the index
  bool or_auto = false;  ///< `auto:D` is also allowed, with D above 0 and at most 1, and its number is -D
};

}  // namespace syncopate
