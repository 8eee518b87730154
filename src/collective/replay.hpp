// Replay: the transfers that all ranks' plans make together, in the order in which they can happen.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "syncopate/plan.hpp"

namespace syncopate::collective {

/// One message: step `send_step` of rank `from` meets step `receive_step` of rank `to`.
struct Transfer {
  std::uint32_t from = 0, to = 0;
  std::uint32_t send_step = 0, receive_step = 0;
  double begin = 0, end = 0;
};

struct Replay {
  std::vector<Transfer> transfers;  ///< in the order of their begins
  double makespan = 0;
  std::string stuck;  ///< empty when every step was carried out; else who waits for what
};

/// Every rank has one send and one receive port; a transfer occupies one of each for `duration(step)`, and begins when
/// both ends have finished the earlier steps on its chunks and on its route. Ranks prefer earlier steps.
[[nodiscard]] Replay replay(const std::vector<Plan>& plans, const std::function<double(const PlanStep&)>& duration);

}  // namespace syncopate::collective
