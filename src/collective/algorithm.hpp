// Algorithm: one entry of the shelf algorithm/: it builds the plan of one rank and states its cost law.
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
  /// Never called for a group of one rank, or a collective that it does not offer.
  Plan (*build)(const Shape& shape);
  /// Cost law. The same restrictions hold.
  double (*seconds)(const Shape& shape, const Load& load);
  /// Decides what the caller left open (blocks, grid, ...); throws Misuse where the tuning does not fit. Null: nothing
  /// to decide.
  void (*settle)(Shape& shape, const Tuning& tuning, const Load& load) = nullptr;
  /// Whether "auto" should think of it for such a (settled) shape; null: always.
  bool (*sensible)(const Shape& shape) = nullptr;
  /// A rank sends to one peer and receives from one, throughout. Cost laws do not see what that is worth: connections
  /// keep their congestion windows full, and no two ranks ever meet at one port. See choice.hpp.
  bool steady = false;
  /// Whether an all-reduce by it may be cut into tiles (tile.hpp): a rank's n-th messages to its peers all come before
  /// its n+1-st. Null: never.
  bool (*tiles)(const Shape& shape) = nullptr;
  /// It is made of other entries, and cannot be part of one itself.
  bool composed = false;
};

/// Every algorithm, by name (generated from the folder algorithm/).
[[nodiscard]] std::span<const Algorithm* const> algorithms();
/// The algorithm of that name; throws Misuse that lists those which offer the collective.
[[nodiscard]] const Algorithm& algorithm_named(std::string_view name, Collective collective);
/// The entry of that name; it exists.
[[nodiscard]] const Algorithm& entry_named(std::string_view name);

}  // namespace syncopate::collective
