// Record: one change of a server's tables, as its replica repeats it, and as what two servers say to each other.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "server/message.hpp"

namespace syncopate::server {

enum class Event : std::uint8_t {
  setup = 1,  ///< message.body: the job's setup. Begins a transfer: an image of every block follows
  image,      ///< message.body: ServerBlock::image of message.block
  initial,    ///< ServerBlock::initialise
  push,       ///< ServerBlock::take
  leave,
  come_back,
  join,  ///< from step message.first
  show,  ///< ServerBlock::show: the next version of what workers are shown
};

/// A block is deterministic: the same records in the same order make the same bits.
struct Record {
  std::uint64_t sequence = 0;  ///< of the server: counts its records from 1
  Event event = Event::setup;
  std::size_t worker = 0;
  Message message{};
};

/// What a server and the keeper of its replica say to each other.
enum class Tells : std::uint8_t {
  claim = 1,    ///< the server, first on a stream: `number` is its process's, drawn at random
  claim_empty,  ///< the same, of a server that has nothing
  holds,        ///< the keeper: the replica has all records up to `number`; 0: nothing of use
  replaced,     ///< the keeper: another process is that server now; the stream ends
  record,       ///< a part of a record, its `number` the sequence; the others of it come before anything else
};

/// As bytes: what it tells, the event, whether it is the last part, a zero, the worker, the number, the message.
struct Relayed {
  Tells tells = Tells::claim;
  Event event = Event::setup;
  bool is_last = true;
  std::uint32_t worker = 0;
  std::uint64_t number = 0;
  Message message{};
};

inline constexpr std::size_t kRelayedHeadBytes = 16 + kHeadBytes;

[[nodiscard]] std::array<std::byte, kRelayedHeadBytes> head_of(const Relayed& relayed);
/// Throws Corrupt for bytes that are none.
[[nodiscard]] Relayed relayed_of(Payload bytes);

/// The parts of a record, in order, whose bodies are at most kMostBodyBytes.
void each_part(const Record& record, const std::function<void(Relayed)>& take);

/// Joins parts to records.
class RecordReader final {
 public:
  /// `most_bytes`: of a record's body.
  explicit RecordReader(std::size_t most_bytes) : most_bytes_(most_bytes) {}
  /// Returns whether `record` is whole now. Throws Corrupt.
  [[nodiscard]] bool take(Relayed part, Record& record);

 private:
  std::size_t most_bytes_;
  std::string body_;  ///< of the parts before
};

}  // namespace syncopate::server
