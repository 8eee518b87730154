// Record: one change of a server's tables, as its replica repeats it, and as a message between two servers.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "server/message.hpp"

namespace syncopate::server {

enum class Event : std::uint8_t {
  setup = 1,  ///< message.body: the job's setup; message.version: identifies the tables (MessageKind::welcome). Begins
              ///< a transfer: an image of every block follows
  image,      ///< message.body: ServerBlock::image of message.block
  initial,    ///< ServerBlock::initialise
  push,       ///< ServerBlock::take
  leave,
  come_back,
  join,  ///< from step message.first, process message.version
  show,  ///< ServerBlock::show: the next version of the state sent to workers
  step,  ///< ServerBlock::finish_step of step message.first with the trust ratio message.rate
  // Changes of tables of rows:
  image_of_rows,  ///< message.body: part message.version of the image of table message.block; message.last: 1 for the
                  ///< last part
  push_rows,      ///< RowTable::push
  join_rows,      ///< RowMarks::join, from step message.first, process message.version
  leave_rows,     ///< RowMarks::leave
  come_back_rows  ///< RowMarks::come_back
};

/// Whether it belongs to a transfer: the state that records change, and not a change.
[[nodiscard]] constexpr bool is_transferred(Event event) noexcept {
  return event == Event::setup || event == Event::image || event == Event::image_of_rows;
}

/// A block is deterministic: equal records in equal order produce equal bits.
struct Record {
  std::uint64_t sequence = 0;  ///< per server: counts its records from 1
  Event event = Event::setup;
  std::size_t worker = 0;
  Message message{};
};

/// Kinds of messages between a server and the keeper of its replica.
enum class RelayKind : std::uint8_t {
  claim = 1,    ///< from the server, first on a stream: `number` identifies its process, drawn at random
  claim_empty,  ///< a claim by a server without tables
  holds,        ///< from the keeper: the replica has all records up to `number`; 0: it must be rebuilt
  replaced,     ///< from the keeper: another process is that server now; the stream ends
  record,       ///< a part of a record, its `number` the sequence; its parts follow each other without other messages
                ///< between them
  occupied,     ///< from the keeper: another live process is that server; the stream ends
};

/// Layout: the kind, the event, whether it is the last part, a zero, the worker, the number, the message.
struct Relayed {
  RelayKind kind = RelayKind::claim;
  Event event = Event::setup;
  bool is_last = true;
  std::uint32_t worker = 0;
  std::uint64_t number = 0;
  Message message{};
};

inline constexpr std::size_t kRelayedHeadBytes = 16 + kHeadBytes;

[[nodiscard]] std::array<std::byte, kRelayedHeadBytes> head_of(const Relayed& relayed);
/// Throws Corrupt if the bytes are malformed.
[[nodiscard]] Relayed relayed_of(Payload bytes);

/// Splits a record into parts, in order, whose bodies have at most kMostBodyBytes.
void each_part(const Record& record, const std::function<void(Relayed)>& take);

/// Assembles records from parts.
class RecordReader final {
 public:
  /// `most_bytes`: limit of a record's body.
  explicit RecordReader(std::size_t most_bytes) : most_bytes_(most_bytes) {}
  /// Returns whether `record` is complete. Throws Corrupt.
  [[nodiscard]] bool take(Relayed part, Record& record);

 private:
  std::size_t most_bytes_;
  std::string body_;  ///< of the earlier parts
};

}  // namespace syncopate::server
