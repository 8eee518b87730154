// Record: one change of a server's tables, as its replica repeats it, and as a message between two servers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <variant>

#include "server/message_bytes.hpp"

namespace syncopate::server {

/// The changes that only a replica repeats; the others are a worker's messages. `block` and `table` as there.
namespace change {

/// Begins a transfer: an image of every block and table of rows follows.
struct SetUp {
  std::uint64_t origin = 0;  ///< Welcome::origin
  Payload setup{};
  static auto fields(auto& of) { return std::tie(of.origin, of.setup); }
};
struct Image {
  std::uint32_t block = 0;
  Payload image{};  ///< ServerBlock::image
  static auto fields(auto& of) { return std::tie(of.block, of.image); }
};
struct Leave {
  std::uint32_t block = 0;
  static auto fields(auto& of) { return std::tie(of.block); }
};
struct ComeBack {
  std::uint32_t block = 0;
  static auto fields(auto& of) { return std::tie(of.block); }
};
struct Join {
  std::uint32_t block = 0;
  Clock from = 0;
  std::uint64_t process = 0;
  static auto fields(auto& of) { return std::tie(of.block, of.from, of.process); }
};
/// ServerBlock::show: the next version of the state sent to workers.
struct Show {
  std::uint32_t block = 0;
  static auto fields(auto& of) { return std::tie(of.block); }
};
/// ServerBlock::finish_step.
struct FinishStep {
  std::uint32_t block = 0;
  Clock step = 0;
  double trust = 0;
  static auto fields(auto& of) { return std::tie(of.block, of.step, of.trust); }
};
/// A part of RowTable::image.
struct ImageOfRows {
  std::uint32_t table = 0;
  std::uint64_t part = 0;
  bool is_last = false;
  Payload image{};
  static auto fields(auto& of) { return std::tie(of.table, of.part, of.is_last, of.image); }
};
struct JoinRows {
  std::uint32_t table = 0;
  Clock from = 0;
  std::uint64_t process = 0;
  Clock meeting = 0;
  static auto fields(auto& of) { return std::tie(of.table, of.from, of.process, of.meeting); }
};
struct LeaveRows {
  std::uint32_t table = 0;
  static auto fields(auto& of) { return std::tie(of.table); }
};
struct ComeBackRows {
  std::uint32_t table = 0;
  static auto fields(auto& of) { return std::tie(of.table); }
};

}  // namespace change

using Change = std::variant<change::SetUp, change::Image, FirstValues, Push, change::Leave, change::ComeBack,
                            change::Join, change::Show, change::FinishStep, change::ImageOfRows, PushRows, RestoreRows,
                            MarkRows, change::JoinRows, change::LeaveRows, change::ComeBackRows>;

/// Whether it belongs to a transfer: the state that records change, and not a change.
[[nodiscard]] inline bool is_transferred(const Change& change) noexcept {
  return std::holds_alternative<change::SetUp>(change) || std::holds_alternative<change::Image>(change) ||
         std::holds_alternative<change::ImageOfRows>(change);
}

/// A block is deterministic: equal records in equal order produce equal bits.
struct Record {
  std::uint64_t sequence = 0;  ///< per server: counts its records from 1
  std::size_t worker = 0;
  Change change{};
};

/// From a server to the keeper of its replica, first on a stream.
struct Claim {
  std::uint64_t process = 0;  ///< identifies the server's process, drawn at random
  bool is_empty = false;      ///< it has no tables
  static auto fields(auto& of) { return std::tie(of.process, of.is_empty); }
};
/// From the keeper: the replica has all records up to `sequence`; 0: it must be rebuilt.
struct Holds {
  std::uint64_t sequence = 0;
  static auto fields(auto& of) { return std::tie(of.sequence); }
};
/// From the keeper: another process is that server. The stream ends.
struct Denied {
  bool was_replaced = false;  ///< it has taken the server's place; otherwise it is alive, and has it
  static auto fields(auto& of) { return std::tie(of.was_replaced); }
};
/// A part of a record, of whose body it has a part. Its parts follow each other without other messages between them.
struct RecordPart {
  std::uint64_t sequence = 0;
  bool is_last = true;
  std::uint32_t worker = 0;
  Change change{};
  static auto fields(auto& of) { return std::tie(of.sequence, of.is_last, of.worker, of.change); }
};
using RelayMessage = std::variant<Claim, Holds, Denied, RecordPart>;

[[nodiscard]] MessageBytes bytes_of(const RelayMessage& message);
/// Throws Corrupt as worker_message_of.
[[nodiscard]] RelayMessage relay_message_of(Payload bytes);

/// Splits a record into parts, in order, whose bodies have at most kMostBodyBytes.
void each_part(const Record& record, const std::function<void(const RecordPart&)>& take);

/// Assembles records from parts.
class RecordReader final {
 public:
  /// `most_bytes`: limit of a record's body.
  explicit RecordReader(std::size_t most_bytes) : most_bytes_(most_bytes) {}
  /// Returns whether `record` is complete. Throws Corrupt.
  [[nodiscard]] bool add(RecordPart part, Record& record);

 private:
  std::size_t most_bytes_;
  std::string body_;  ///< of the earlier parts
};

}  // namespace syncopate::server
