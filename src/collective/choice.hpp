// Choice: an algorithm resolved for a shape; and all algorithms for a collective in the order of preference.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "collective/algorithm.hpp"
#include "collective/port_sharing.hpp"
#include "collective/replay/price.hpp"

namespace syncopate::collective {

/// An algorithm, and the resolved shape that is common to all ranks (its rank is 0).
struct Choice {
  const Algorithm* algorithm = nullptr;
  Shape shape;
  double law_s = 0;
  std::optional<double> measured_s{};
};

/// The algorithm with the shape completed by the tuning and by its own `resolve`, and its law where the ranks of a host
/// share its port. A group of one rank resolves nothing.
[[nodiscard]] Choice resolved(const Algorithm& algorithm, const Shape& shape, const Tuning& tuning, const Load& load,
                              PortSharing& sharing);
enum class Composed : std::uint8_t { with, without };
/// All algorithms that offer the collective and suit the shape, in the order of their cost laws.
[[nodiscard]] std::vector<Choice> ranked(const Shape& shape, const Tuning& tuning, const Load& load, Composed composed,
                                         PortSharing& sharing);
/// Sorts by the preference of "auto": first the measured ones by time, then the others by cost law, where a steady
/// algorithm may be up to 15 % slower (5 % if bytes are copied through memory).
void sort_by_preference(std::vector<Choice>& choices, const LinkCost& link);

/// The plan of `rank`; empty in a group of one.
[[nodiscard]] Plan build_plan(const Choice& choice, std::uint32_t rank);
/// The plans of all ranks; `choice` must outlive them.
[[nodiscard]] replay::Plans plans_of(const Choice& choice);
/// The algorithm for a part of a composed one: `name` ("auto": the best) on the ranks of `shape`.
[[nodiscard]] Choice choose_part(std::string_view name, const Shape& shape, const Tuning& tuning, const Load& load);

}  // namespace syncopate::collective
