// Choice: an algorithm settled for a shape, and all that offer a collective in the order of their cost laws.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "collective/algorithm.hpp"
#include "collective/replay/ensemble.hpp"

namespace syncopate::collective {

/// An algorithm, and the shape of every rank's plan by it (its rank is 0).
struct Choice {
  const Algorithm* algorithm = nullptr;
  Shape shape;
  double law_s = 0;
  std::optional<double> measured_s{};
};

/// The algorithm with what the tuning and its own `settle` decide. A group of one rank has nothing to settle.
[[nodiscard]] Choice settled(const Algorithm& algorithm, const Shape& shape, const Tuning& tuning, const Load& load);
enum class Composed : std::uint8_t { with, without };
/// All that offer the collective and are sensible for the shape, in the order of their laws.
[[nodiscard]] std::vector<Choice> ranked(const Shape& shape, const Tuning& tuning, const Load& load, Composed composed);
/// Sorts as `auto` prefers: what was measured comes first, by its time; what was not goes by its law, where a steady
/// algorithm is preferred up to 15 % (5 % where bytes are copied through memory).
void sort_by_preference(std::vector<Choice>& choices, const LinkCost& link);

/// The rank's plan; an empty one where it is alone.
[[nodiscard]] Plan build_plan(const Choice& choice, std::uint32_t rank);
/// The plans of all ranks; `choice` outlives them.
[[nodiscard]] replay::Plans plans_of(const Choice& choice);
/// A part of a composed algorithm: `name` (or the best for "auto") on the ranks of `shape`.
[[nodiscard]] Choice choose_part(std::string_view name, const Shape& shape, const Tuning& tuning, const Load& load);

}  // namespace syncopate::collective
