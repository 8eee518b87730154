// Parameters of codecs: numbers behind the colon of `name:0.01,4`, and which are allowed.
#pragma once

#include <span>
#include <vector>

#include "base/shelf/parameters.hpp"
#include "compress/codec.hpp"

namespace syncopate::compress {

using base::shelf::Parameter;

/// The numbers of `settings.parameter`; those that are left out at its end are taken from the codec's default. Throws
/// Misuse that names the parameter, its value and what is allowed.
[[nodiscard]] inline std::vector<double> parameters_of(const Settings& settings,
                                                       std::span<const Parameter> parameters) {
  return base::shelf::numbers_of({"codec", settings.codec->name, settings.parameter, settings.codec->parameter},
                                 parameters);
}

}  // namespace syncopate::compress
