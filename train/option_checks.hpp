// What options say together.
#pragma once

#include "options.hpp"

namespace syncopate::train {

/// Steps of which a profile is the median, at least.
inline constexpr std::uint64_t kProfiledSteps = 20;

/// Throws Misuse where options exclude each other or lack one another.
void check(const Options& o);

}  // namespace syncopate::train
