// Program: a plan with the dependencies of its steps, and with its steps sorted by peer.
#pragma once

#include <cstdint>
#include <vector>

#include "syncopate/plan.hpp"

namespace syncopate::collective::plan {

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
