// Programs: a plan with its dependencies, and the tiling of a long vector into many short plans that overlap.
#pragma once

#include <cstdint>
#include <vector>

#include "syncopate/plan.hpp"

namespace syncopate::collective::plan {

/// Between ranks that share memory a long vector is limited by memory bandwidth: a chunk that has been reduced has left
/// the cache before it is sent on. So the vector is cut into `tiles` pieces, each carried out by `plan`; piece t + 1
/// begins two rounds after piece t. The result has tiles * plan.chunks chunks. Not for plans in which a rank owns a
/// certain chunk (reduce-scatter, all-gather), nor for plans whose routes proceed at different rates: an algorithm
/// states whether its plans can be tiled (Algorithm::tiles).
[[nodiscard]] Plan tiled(const Plan& plan, std::uint32_t tiles);

/// The best number of tiles for a vector of `bytes` bytes between `ranks` ranks that share memory.
[[nodiscard]] std::uint32_t tiles_for(std::size_t bytes, int ranks);

/// The steps that send to one peer, or receive from one, in plan order.
struct Route {
  std::uint32_t peer = 0;
  std::vector<std::uint32_t> steps;
};

/// The way in which the sum of an arrival returns to the peer that sent the arrival.
struct Return {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::uint32_t step = kNone;  ///< the send that carries the sum back; kNone: it does not go back
  bool at_once = false;        ///< no other arrival is added before that send
};

struct Program {
  Plan plan;
  /// waits[i]: the earlier steps that conflict with step i: both touch a chunk, and one of the two writes it. Steps
  /// that another step in the list already waits for on the same chunk are left out.
  std::vector<std::vector<std::uint32_t>> waits;
  std::vector<Return> returns;  ///< by step; set for receive_reduce steps
  /// lends[i]: the next step that touches the chunks sent by step i is a receive from the same peer, so the peer may
  /// write its reply there.
  std::vector<bool> lends;
  std::vector<Route> outgoing;
  std::vector<Route> incoming;
};

[[nodiscard]] Program compile(Plan plan);

}  // namespace syncopate::collective::plan
