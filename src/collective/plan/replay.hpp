// Replay: the transfers that all ranks' plans make together, in the order in which they can happen.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "syncopate/plan.hpp"

namespace syncopate::collective::plan {

/// One message: step `send_step` of rank `from` meets step `receive_step` of rank `to`.
struct Transfer {
  std::uint32_t from = 0, to = 0;
  std::uint32_t send_step = 0, receive_step = 0;
  double begin = 0, end = 0;
};

/// A transfer reads its chunks when it begins and changes the receiver's when it lands.
struct Moment {
  std::size_t transfer = 0;
  bool lands = false;
};

struct Replay {
  std::vector<Transfer> transfers;  ///< in the order of their begins
  std::vector<Moment> moments;      ///< in the order in which they happen
  double makespan = 0;
  std::string stuck;  ///< empty when every step was carried out; else who waits for what
};

/// Every rank has one send and one receive port; a transfer occupies one of each for `duration(from, to, receive
/// step)`, and begins when its turn on its route has come and its ends have finished the earlier steps on its chunks;
/// what is to be reduced may travel before the receiver has finished those, and lands when it has. Ports prefer the
/// receiver's earlier steps, then the sender's.
using Duration = std::function<double(std::uint32_t from, std::uint32_t to, const PlanStep& arrival)>;
[[nodiscard]] Replay replay(const std::vector<Plan>& plans, const Duration& duration);

/// Rounds: a chunk takes one unit of time.
[[nodiscard]] inline double rounds_of(std::uint32_t /*from*/, std::uint32_t /*to*/, const PlanStep& arrival) {
  return arrival.chunk_count;
}

}  // namespace syncopate::collective::plan
