// Algorithm: an entry of the shelf algorithm/: it builds the plan of one rank and states its cost law.
#pragma once

#include <span>
#include <string_view>

#include "collective/plan/shape.hpp"

namespace syncopate::collective {

using plan::Load;
using plan::Shape;

struct Algorithm {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  bool (*offers)(Collective collective);
  /// Builds a rank's plan. Not called for a group of one rank, nor for a collective that it does not offer.
  Plan (*build)(const Shape& shape);
  /// The cost law in seconds. The same restrictions hold.
  double (*seconds)(const Shape& shape, const Load& load);
  /// Sets what the caller left open (blocks, grid, ...); throws Misuse if the tuning does not fit. Null: there is
  /// nothing to set.
  void (*resolve)(Shape& shape, const Tuning& tuning, const Load& load) = nullptr;
  /// Whether "auto" should consider it for such a resolved shape; null: always.
  bool (*sensible)(const Shape& shape) = nullptr;
  /// Every rank sends to one peer only and receives from one peer only. Cost laws do not show the advantage: TCP
  /// connections keep their congestion windows, and no two ranks compete for a port. See choice.hpp.
  bool steady = false;
  /// Whether an all-reduce by it can be cut into tiles (program.hpp): all of a rank's n-th messages to its peers come
  /// before its (n+1)-th. Null: never.
  bool (*tiles)(const Shape& shape) = nullptr;
  /// It is composed of other algorithms, and cannot be part of one.
  bool composed = false;
};

/// Every algorithm, by name (generated from the folder algorithm/).
[[nodiscard]] std::span<const Algorithm* const> algorithms();
/// The algorithm of that name; throws Misuse that lists those which offer the collective.
[[nodiscard]] const Algorithm& algorithm_named(std::string_view name, Collective collective);
/// The algorithm of that name, which must exist.
[[nodiscard]] const Algorithm& entry_named(std::string_view name);

}  // namespace syncopate::collective
