// Program: a plan made ready to run: which earlier steps each step waits for, and the order of steps per peer.
#pragma once

#include <cstdint>
#include <vector>

#include "syncopate/plan.hpp"

namespace syncopate::collective {

/// Steps that go to, or come from, one peer, in plan order.
struct Route {
  std::uint32_t peer = 0;
  std::vector<std::uint32_t> steps;
};

struct Program {
  Plan plan;
  /// waits[i]: earlier steps that touch a chunk of step i in a conflicting way (one of the two writes it). Steps that
  /// are implied by another one on the same chunk are left out.
  std::vector<std::vector<std::uint32_t>> waits;
  /// replies[i]: the step that returns what step i added to, to the rank from which it came; kNoReply if none does.
  std::vector<std::uint32_t> replies;
  static constexpr std::uint32_t kNoReply = ~std::uint32_t{0};
  std::vector<Route> outgoing;
  std::vector<Route> incoming;
};

[[nodiscard]] Program compile(Plan plan);

}  // namespace syncopate::collective
