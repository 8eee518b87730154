// Program: a plan made ready to run: which earlier steps each step waits for, and the order of steps per peer.
#pragma once

#include <cstdint>
#include <vector>

#include "syncopate/plan.hpp"

namespace syncopate::collective::plan {

/// Steps that go to, or come from, one peer, in plan order.
struct Route {
  std::uint32_t peer = 0;
  std::vector<std::uint32_t> steps;
};

/// How what a step adds to returns to the rank from which it came.
struct Return {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::uint32_t step = kNone;  ///< the send that returns it
  bool at_once = false;        ///< nothing else is added in between
};

struct Program {
  Plan plan;
  /// waits[i]: earlier steps that touch a chunk of step i in a conflicting way (one of the two writes it). Steps that
  /// are implied by another one on the same chunk are left out.
  std::vector<std::vector<std::uint32_t>> waits;
  std::vector<Return> returns;  ///< of the arrivals that are reduced
  /// lends[i]: what step i sends is next touched by a receive from the same peer, so that the peer may write it there.
  std::vector<bool> lends;
  std::vector<Route> outgoing;
  std::vector<Route> incoming;
};

[[nodiscard]] Program compile(Plan plan);

}  // namespace syncopate::collective::plan
