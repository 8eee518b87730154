// Optimizer rules by name, and their hyperparameters.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "syncopate/catalogue.hpp"
#include "syncopate/rule.hpp"

namespace syncopate::optim {

/// The rule's defaults with the given values. Throws Misuse for a name that the rule does not take, a name given twice,
/// or a value out of range.
[[nodiscard]] Hyperparameters hyperparameters_of(const Rule& rule,
                                                 std::span<const std::pair<std::string, double>> given);

/// The library's rules, by name (generated from the folder rule/).
[[nodiscard]] std::span<const Rule* const> rules();
[[nodiscard]] const Rule& rule_named(std::string_view name, const Catalogue& catalogue = {});  ///< throws Misuse

}  // namespace syncopate::optim
