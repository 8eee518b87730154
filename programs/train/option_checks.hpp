// Checks of combinations of options.
#pragma once

#include "options.hpp"

namespace CLI {
class App;
}

namespace syncopate::train {

/// Least number of steps of a profile, which is their median.
inline constexpr std::uint64_t kProfiledSteps = 20;

/// Throws Misuse if options exclude each other, or if one needs another that is missing.
void check(const Options& o);
/// Throws Misuse if an option was given that no part of the recipe uses; without a recipe there is one part.
void check_effect(const CLI::App& app, const std::vector<const Options*>& parts);

}  // namespace syncopate::train
