// Message: what workers and servers say to each other, as a value and as bytes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "server/consistency.hpp"
#include "server/payload.hpp"

namespace syncopate::server {

/// The unit that travels: a message's body is at most this long, and a block of a table with its weights is.
inline constexpr std::size_t kMostBodyBytes = std::size_t{1} << 20;
inline constexpr std::size_t kHeadBytes = 48;

enum class Says : std::uint8_t {
  // A worker says:
  setup = 1,  ///< body: the job's setup; the first message of a stream. `last`: 1 if this process has sent nothing
              ///< before; it takes part from step `first` on. `version`: the process, drawn at random
  initial,    ///< body: a block's first weights, or with `version` p that part of it (kept_part); from worker 0
  push,       ///< body: the update of steps [first, last) of a block. Its weights are asked for in exchange
  fetch,      ///< a block's weights are asked for
  finish,     ///< the worker has ended in order; its clocks count no more
  // A server says:
  welcome,  ///< the setup is accepted. `least`: the newest step of any block; `last`: of this worker
  weights,  ///< body: a block's weights. `least`: steps of everybody that they hold; `last`: steps of the worker
  want,     ///< another worker waits for all updates of the first `least` steps
  refuse,   ///< body: why; `block`: the ErrorKind. The stream ends
  status,   ///< body: the server's status, to one who is no worker. The stream ends
};

struct Message {
  Says says = Says::setup;
  std::uint32_t block = 0;    ///< of the server that the message goes to or comes from
  Clock first = 0, last = 0;  ///< push: the steps of the update
  Clock least = 0;            ///< push, fetch: answered when the server has so many steps of everybody
  double rate = 0;            ///< push, where the server runs the rule: the learning rate; or kMissed
  /// push, fetch: which of the block's versions the worker holds. weights: which one it holds then. See kExact.
  std::uint64_t version = 0;
  Payload body{};
};

/// Of a push without an update: its worker was away in the last of its steps, and takes no part in their average.
inline constexpr double kMissed = -1;

/// Versions count what a server has shown of a block whose answers are coded; 0: the worker holds none of them, and an
/// answer has the weights themselves. A request with kExact is answered so, with what the server really keeps.
inline constexpr std::uint64_t kExact = ~std::uint64_t{0};

/// A fetch with kKept - p is answered with part p of what the server keeps of the block, and leaves all versions as
/// they are: 0: the weights, 1 + s: the optimizer's state s.
inline constexpr std::uint64_t kKept = kExact - 1;
inline constexpr std::size_t kMostKeptParts = 3;
[[nodiscard]] constexpr std::optional<std::size_t> kept_part(std::uint64_t version) {
  if (version > kKept || kKept - version >= kMostKeptParts) return std::nullopt;
  return kKept - version;
}

/// Fields in order, little-endian; the body follows.
[[nodiscard]] std::array<std::byte, kHeadBytes> head_of(const Message& message);
/// Throws Corrupt for bytes that are no message of a worker, or of a server.
[[nodiscard]] Message message_of(Payload bytes, bool from_worker);

}  // namespace syncopate::server
