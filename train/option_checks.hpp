// What options say together.
#pragma once

#include "options.hpp"

namespace CLI {
class App;
}

namespace syncopate::train {

/// Steps of which a profile is the median, at least.
inline constexpr std::uint64_t kProfiledSteps = 20;

/// Throws Misuse where options exclude each other or lack one another.
void check(const Options& o);
/// Throws Misuse where an option was given that none of the recipe's parts uses; without a recipe there is one part.
void check_effect(const CLI::App& app, const std::vector<const Options*>& parts);

}  // namespace syncopate::train
