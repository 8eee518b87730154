// Consistency models by name, and the three decisions that follow from a rule.
#pragma once

#include <span>
#include <string_view>

#include "syncopate/catalogue.hpp"
#include "syncopate/consistency.hpp"

namespace syncopate::server {

/// Limit of a clock in messages: sums and differences of two clocks do not overflow.
inline constexpr Clock kMostClock = Clock{1} << 62;

/// The worker's copy is too old for its next step, so it waits for another. (fetched < own - s, allowed < own)
[[nodiscard]] bool must_fetch(const Rule& rule, const ClockView& clocks) noexcept;
/// Rule::last_step within the limits of a clock; 0 without it.
[[nodiscard]] Clock last_step_of(const Rule& rule, const ServerView& view);
/// Whether the worker sends its accumulated update at the end of a step, and requests the weights in the same message:
/// at the latest when it must fetch, or when another worker waits for the withheld updates.
[[nodiscard]] bool travels(const Rule& rule, const ClockView& clocks);

/// The library's consistency models, by name (generated from the folder consistency/).
[[nodiscard]] std::span<const Consistency* const> consistencies();
/// Parses `name` or `name:parameter`. Throws Misuse that lists the models, or names the parameter and the allowed
/// values.
[[nodiscard]] Rule rule_of(std::string_view text, const Catalogue& catalogue = {});

}  // namespace syncopate::server
