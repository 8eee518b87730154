// Message: the messages between workers and servers, as a value and as bytes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "server/consistency.hpp"
#include "server/payload.hpp"

namespace syncopate::server {

/// Limit of a message's body, and of a block's weights: a block is the unit of transfer.
inline constexpr std::size_t kMostBodyBytes = std::size_t{1} << 20;
inline constexpr std::size_t kHeadBytes = 56;

enum class MessageKind : std::uint8_t {
  // From a worker:
  setup = 1,  ///< body: the job's setup; the first message of a stream. `last`: 1 if this process has sent nothing
              ///< before; `first`, `step`: its Entry. `version`: identifies the process, drawn at random. `block`:
              ///< identifies all servers' tables together, as of their welcomes; 0: not known yet
  initial,    ///< body: a block's first weights, or with `version` p that part of it (kept_part); from worker 0
  push,       ///< body: the update of steps [first, last) of a block. The server answers with the block's weights
  fetch,      ///< requests a block's weights
  finish,     ///< the worker has ended in order; its clocks no longer count
  push_rows,  ///< `block`: a table of rows; body: ids, then their gradients; `version`: number of this worker's pushes
              ///< to the table and server, from 1. Answered by `pushed`
  pull_rows,  ///< `block`: a table of rows; body: ids. `least`: the worker's pushes that the answer contains;
              ///< `version`: of the request, repeated by its answer `rows`
  restore_rows,  ///< numbered as a push; body: rows with their state (RowLayout), for the table to take those it lacks
  mark_rows,     ///< numbered as a push; `last`: the earlier ones are all of this number of steps; 0: of unknown steps.
                 ///< `first`: 1 if the worker meets the others: answered when all have marked that step, or, without
                 ///< one, come to this begin or end of a visit, whose number (RowMarks) `step` is
  visit_rows,    ///< `block`: a table of rows; `first`: a slab of it; `least`, `version`: as of pull_rows
  // From a server:
  welcome,  ///< the setup is accepted. `least`: the newest step of any block; `last`: of this worker; `first`: the
            ///< server writes a snapshot each time that all workers have made this number of steps; 0: never.
            ///< `version`: identifies the tables of this server since they were created or restored, at step `step`;
            ///< `block`: of the first setup that identified all servers' tables; 0: none yet. body: the number of the
            ///< last begin or end of a visit that the worker has come to, or is excused from
  weights,  ///< body: a block's weights. `least`: number of every worker's steps that they hold; `last`: of this
            ///< worker's
  want,     ///< another worker waits for all updates of the first `least` steps
  refuse,   ///< body: the reason; `block`: the ErrorKind. The stream ends
  status,   ///< body: the server's status, for an observer. The stream ends
  pushed,   ///< `block`: a table of rows; `version`: number of the worker's pushes that are applied
  rows,     ///< body: the rows of a `pull_rows`, in its order
  visited,  ///< `version`: of a `visit_rows`; body: its slab; `first`: number of rows in it; `last`: number of slabs
};

struct Message {
  MessageKind kind = MessageKind::setup;
  std::uint32_t block = 0;    ///< of the server that sends or receives the message
  Clock first = 0, last = 0;  ///< push: the steps of the update
  Clock least = 0;            ///< push, fetch: answered when the server has this number of every worker's steps
  double rate = 0;            ///< push, if the server runs the rule: the learning rate; or kMissed
  /// push, fetch: the version of the block that the worker holds. weights: the version that it then holds. See kExact.
  std::uint64_t version = 0;
  /// push, fetch: answered also when Rule::last_step allows this step; 0: no. weights: the step that it allows.
  Clock step = 0;
  Payload body{};
};

/// Learning rate of a push that carries no update because the worker missed its last step. It does not count in the
/// step's average.
inline constexpr double kMissed = -1;

/// Versions count the states that a server has sent of a block whose answers are coded. 0: the worker holds none, and
/// the answer holds the weights themselves. A request with kExact gets the exact weights that the server keeps.
inline constexpr std::uint64_t kExact = ~std::uint64_t{0};

/// A fetch with kKept - p is answered with part p of the server's state of the block, and leaves all versions
/// unchanged. Part 0: the weights; part 1 + s: the optimizer's state s.
inline constexpr std::uint64_t kKept = kExact - 1;
inline constexpr std::size_t kMostKeptParts = 3;
[[nodiscard]] constexpr std::optional<std::size_t> kept_part(std::uint64_t version) {
  if (version > kKept || kKept - version >= kMostKeptParts) return std::nullopt;
  return kKept - version;
}

/// Fields in order, little-endian; the body follows.
[[nodiscard]] std::array<std::byte, kHeadBytes> head_of(const Message& message);
/// Throws Corrupt if the bytes are not a message of a worker (of a server, if not `from_worker`).
[[nodiscard]] Message message_of(Payload bytes, bool from_worker);

}  // namespace syncopate::server
