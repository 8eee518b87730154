// Replay: the messages that all ranks' plans exchange, in the order in which they can happen.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collective/replay/ensemble.hpp"

namespace syncopate::collective::replay {

/// One message: step `send_step` of program `from` meets step `receive_step` of program `to`. Programs are counted as
/// in the ensemble: one that stands for all ranks sends to itself.
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
  std::vector<double> ended;        ///< by program: when its last step finished
  double makespan = 0;
  std::string stuck;  ///< empty when every step was carried out; else who waits for what
};

/// A message that begins now.
struct Message {
  const PlanStep& arrival;  ///< the receiver's step: its peer is the sender
  std::uint32_t to = 0;     ///< the receiver; 0 where programs are one
  double begin = 0;
};

struct Conditions {
  /// When it will have been received; asked in the order in which messages begin.
  std::function<double(const Message&)> end_of;
  std::span<const double> called{};  ///< by program: when its rank takes part from; empty: all from 0 on
};

/// Every rank has one send and one receive port; a message occupies one of each until its end. It begins when both
/// ranks have called, its turn on its route has come and its ends have finished the earlier steps on its chunks; what
/// is to be reduced may travel before the receiver has finished those, and lands when it has. Ports prefer the
/// receiver's earlier steps, then the sender's.
[[nodiscard]] Replay run(const Ensemble& ensemble, const Conditions& conditions);

/// Rounds: a chunk takes one unit of time.
[[nodiscard]] inline double end_of_round(const Message& message) { return message.begin + message.arrival.chunk_count; }

}  // namespace syncopate::collective::replay
