// Algorithm: one entry of the shelf algorithm/: it builds the plan of one rank and states its cost law.
#pragma once

#include <span>
#include <string_view>

#include "syncopate/plan.hpp"

namespace syncopate::collective {

/// What a plan is for. `blocks` counts for algorithms that have them, and is at least 1 there.
struct Shape {
  Collective collective = Collective::allreduce;
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint32_t root = 0;
  std::uint32_t blocks = 0;
};

struct Algorithm {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  bool (*offers)(Collective collective);
  /// Never called for a group of one rank, or a collective that it does not offer.
  Plan (*build)(const Shape& shape);
  /// Cost law: seconds for `bytes` on `ranks` ranks.
  double (*seconds)(Collective collective, double ranks, double bytes, const LinkCost& link);
  /// The best number of pipeline blocks; null where an algorithm has none.
  std::uint32_t (*blocks)(double ranks, double bytes, const LinkCost& link) = nullptr;
  /// A rank sends to one peer and receives from one, throughout. Cost laws do not see what that is worth: connections
  /// keep their congestion windows full, and no two ranks ever meet at one port. See select.
  bool steady = false;
};

/// Every algorithm, by name (generated from the folder algorithm/).
[[nodiscard]] std::span<const Algorithm* const> algorithms();
/// The algorithm of that name; throws Misuse that lists those which offer the collective.
[[nodiscard]] const Algorithm& algorithm_named(std::string_view name, Collective collective);
/// The one with the lowest cost law, or a steady one that is predicted to take at most 5 % longer; `name` other than
/// "auto" is looked up instead.
[[nodiscard]] const Algorithm& select(std::string_view name, const PlanRequest& request, const LinkCost& link);
/// The shape of every rank's plan by this algorithm: as the request says, with the best blocks where it names none.
[[nodiscard]] Shape shape_of(const PlanRequest& request, const Algorithm& algorithm, const LinkCost& link);

}  // namespace syncopate::collective
