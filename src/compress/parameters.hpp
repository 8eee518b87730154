// Parameters of codecs: the numbers after the colon of `name:0.01,4`, and their allowed ranges.
#pragma once

#include <span>
#include <vector>

#include "base/shelf/parameters.hpp"
#include "compress/codec.hpp"

namespace syncopate::compress {

using base::shelf::Parameter;

/// The numbers of `settings.parameter`; missing numbers at its end come from the codec's default. Throws Misuse with
/// the parameter, its value and the allowed range.
[[nodiscard]] inline std::vector<double> parameters_of(const Settings& settings,
                                                       std::span<const Parameter> parameters) {
  return base::shelf::numbers_of({"codec", settings.codec->name, settings.parameter, settings.codec->parameter},
                                 parameters);
}

}  // namespace syncopate::compress
