// Replay: the messages that the plans of all ranks exchange, in a possible order, with their times.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collective/replay/price.hpp"

namespace syncopate::collective::replay {

/// One message: step `send_step` of program `from` to step `receive_step` of program `to`. Programs are numbered as in
/// the ensemble; a program that stands for all ranks sends to itself.
struct Transfer {
  std::uint32_t from = 0, to = 0;
  std::uint32_t send_step = 0, receive_step = 0;
  double begin = 0, end = 0;
};

/// An event of a transfer. Its chunks are read when it begins, and the receiver's chunks change when it lands.
struct Event {
  std::size_t transfer = 0;
  bool lands = false;
};

struct Replay {
  std::vector<Transfer> transfers;  ///< in the order in which they begin
  std::vector<Event> events;        ///< in the order of time
  std::vector<double> ended;        ///< by program: end of its last step
  double makespan = 0;
  std::string stuck;  ///< empty if every step ran; otherwise names a rank that waits, and its step
};

/// A message at its start.
struct Message {
  const PlanStep& arrival;  ///< the receiver's step; its peer is the sender
  std::uint32_t to = 0;     ///< the receiver; 0 if one program stands for all
  double begin = 0;
};

struct Conditions {
  /// The time at which the message has been received. Called in the order in which messages begin.
  std::function<double(const Message&)> end_of;
  std::span<const double> called{};  ///< by program: when its rank calls; empty: all at 0
};

/// Replays all programs. Every rank has one send port and one receive port, and a message occupies one of each until it
/// ends. A message begins when both ranks have called, the messages before it on its route have begun, and the earlier
/// steps on its chunks have finished: the sender's always, the receiver's unless the message is to be reduced. A
/// message to be reduced may arrive earlier and lands when those steps have finished. If several messages compete for a
/// port, the receiver's earlier step comes first, then the sender's.
[[nodiscard]] Replay run(const Ensemble& ensemble, const Conditions& conditions);

/// For replays that count rounds: a chunk takes one unit of time.
[[nodiscard]] inline double end_of_round(const Message& message) { return message.begin + message.arrival.chunk_count; }

}  // namespace syncopate::collective::replay
