// Algorithm: one entry of the shelf algorithm/: it builds the plan of one rank and states its cost law.
#pragma once

#include <compare>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "syncopate/plan.hpp"

namespace syncopate::collective {

/// What a plan depends on. An algorithm's `settle` fills in what is its own; the rest stays at its default, so that
/// equal plans have equal shapes.
struct Shape {
  Collective collective = Collective::allreduce;
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint32_t root = 0;
  std::uint32_t blocks = 0;             ///< pipeline blocks (hierarchical: those of `inner`)
  std::uint32_t rows = 0, columns = 0;  ///< torus_2d
  std::string_view inner, outer;        ///< hierarchical: names of the shelf
  std::uint32_t outer_blocks = 0;       ///< hierarchical
  std::vector<std::uint32_t> hosts;     ///< by rank: the number of its host, counted from 0; empty: one host
  friend auto operator<=>(const Shape&, const Shape&) = default;  // NOLINT(modernize-use-nullptr): a misreading
};

/// What is to be carried, and what that costs.
struct Load {
  double bytes = 0;
  LinkCost link;   ///< between hosts; within the host where there is only one
  LinkCost local;  ///< within hosts
};

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
  /// keep their congestion windows full, and no two ranks ever meet at one port. See select.
  bool steady = false;
  /// Whether an all-reduce by it may be cut into tiles (tile.hpp): a rank's n-th messages to its peers all come before
  /// its n+1-st. Null: never.
  bool (*tiles)(const Shape& shape) = nullptr;
  /// It is made of other entries, and cannot be part of one itself.
  bool composed = false;
};

[[nodiscard]] constexpr bool has_root(Collective collective) noexcept {
  return collective == Collective::broadcast || collective == Collective::reduce || collective == Collective::gather ||
         collective == Collective::scatter;
}
[[nodiscard]] constexpr bool reduces(Collective collective) noexcept {
  return collective == Collective::allreduce || collective == Collective::reduce ||
         collective == Collective::reduce_scatter || collective == Collective::barrier;
}

/// An algorithm, and the shape of every rank's plan by it (its rank is 0).
struct Choice {
  const Algorithm* algorithm = nullptr;
  Shape shape;
  double law_s = 0;
  std::optional<double> measured_s{};
};

/// The host numbers of a request, counted from 0 in the order of the ranks; empty where all share one.
[[nodiscard]] std::vector<std::uint32_t> hosts_of(const PlanRequest& request);
/// Every algorithm, by name (generated from the folder algorithm/).
[[nodiscard]] std::span<const Algorithm* const> algorithms();
/// The algorithm of that name; throws Misuse that lists those which offer the collective.
[[nodiscard]] const Algorithm& algorithm_named(std::string_view name, Collective collective);
/// The entry of that name; it exists.
[[nodiscard]] const Algorithm& entry_named(std::string_view name);
/// The algorithm that the request names, or the fastest: of those that were measured for such ranks and hosts the one
/// with the least time; where none was, the one with the lowest cost law, or a steady one that is predicted to take at
/// most 15 % longer (5 % where bytes are copied through memory). Throws Misuse where the request is wrong.
[[nodiscard]] Choice choose(const PlanRequest& request, const NetworkCost& cost);
/// All that offer the collective and are sensible, in the order of that preference.
[[nodiscard]] std::vector<Choice> rank_choices(const PlanRequest& request, const NetworkCost& cost);
/// The rank's plan; an empty one where it is alone.
[[nodiscard]] Plan build_plan(const Choice& choice, std::uint32_t rank);

/// A part of a composed algorithm: `name` (or the best for "auto") on the ranks of `shape`.
[[nodiscard]] Choice choose_part(std::string_view name, const Shape& shape, const Tuning& tuning, const Load& load);

}  // namespace syncopate::collective
