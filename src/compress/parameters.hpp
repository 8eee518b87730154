// Parameters of codecs: numbers behind the colon of `name:0.01,4`, and which are allowed.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "compress/codec.hpp"

namespace syncopate::compress {

struct Parameter {
  std::string_view name;
  double above = 0;  ///< exclusive
  double most = 0;   ///< inclusive
  bool whole = false;
  bool or_zero = false;  ///< 0 is allowed too
};

/// The numbers of `settings.parameter`, separated by commas; those that are left out at its end are taken from the
/// codec's default. Throws Misuse that names the parameter, its value and what is allowed.
[[nodiscard]] std::vector<double> parameters_of(const Settings& settings, std::span<const Parameter> parameters);

}  // namespace syncopate::compress
