// Message: the messages between workers and servers, a struct for each kind; message_bytes.hpp has them as bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <variant>

#include "server/consistency.hpp"
#include "server/payload.hpp"
#include "syncopate/error.hpp"

namespace syncopate::server {

/// Limit of a message's body, and of a block's weights: a block is the unit of transfer.
inline constexpr std::size_t kMostBodyBytes = std::size_t{1} << 20;

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

// In each struct `fields` has the fields in their order on the wire, a body last. `block` and `table` (of rows) number
// what the server that sends or receives the message keeps.

/// The first message of a worker's stream; answered by Welcome.
struct Hello {
  std::uint64_t process = 0;    ///< identifies the process, drawn at random
  std::uint32_t origins = 0;    ///< identifies all servers' tables together, as of their welcomes; 0: not known yet
  bool is_new = false;          ///< this process has sent nothing before
  Clock step = 0, meeting = 0;  ///< its Entry
  Payload setup{};              ///< of the job
  static auto fields(auto& of) { return std::tie(of.process, of.origins, of.is_new, of.step, of.meeting, of.setup); }
};

/// From worker 0: part `part` (kept_part) of a block's first values.
struct FirstValues {
  std::uint32_t block = 0;
  std::uint64_t part = 0;
  Payload values{};
  static auto fields(auto& of) { return std::tie(of.block, of.part, of.values); }
};

/// When a server answers a request with Weights, and with what.
struct AnswerTerms {
  Clock least = 0;            ///< when it has this number of every worker's steps,
  Clock step = 0;             ///< or when Rule::last_step allows this step; 0: no
  std::uint64_t version = 0;  ///< of the block, as the worker holds it. See kExact
};

/// The update of steps [first, last) of a block, or with first = last and a piece above 0 what earlier ones have left
/// of it. The server answers with the block's weights.
struct Push {
  std::uint32_t block = 0;
  Clock first = 0, last = 0;
  std::uint32_t piece = 0;  ///< counts the pushes with the same `last`
  Clock left = 0;           ///< the last steps before `last` of whose updates the worker still has a part
  bool is_packed = false;   ///< without a codec: the elements that are not 0, by compress::sparse::write_packet
  double rate = 0;          ///< the learning rate, if the server runs the rule; or kMissed
  AnswerTerms answer{};
  Payload update{};
  static auto fields(auto& of) {
    return std::tie(of.block, of.first, of.last, of.piece, of.left, of.is_packed, of.rate, of.answer.least,
                    of.answer.step, of.answer.version, of.update);
  }
};

/// Requests a block's weights.
struct Fetch {
  std::uint32_t block = 0;
  AnswerTerms answer{};
  static auto fields(auto& of) { return std::tie(of.block, of.answer.least, of.answer.step, of.answer.version); }
};

/// The worker has a block's weights that it did not request, and may be sent others.
struct Seen {
  std::uint32_t block = 0;
  static auto fields(auto& of) { return std::tie(of.block); }
};
/// The worker has ended in order; its clocks no longer count.
struct Finish {
  static auto fields(auto&) { return std::tie(); }
};

// A worker's pushes to a table of rows and a server are numbered from 1, and answered by PushedRows.

struct PushRows {
  std::uint32_t table = 0;
  std::uint64_t number = 0;
  double rate = 0;
  Payload rows{};  ///< ids, then their gradients
  static auto fields(auto& of) { return std::tie(of.table, of.number, of.rate, of.rows); }
};

/// Rows with their state, of which the table takes those that it lacks.
struct RestoreRows {
  std::uint32_t table = 0;
  std::uint64_t number = 0;
  Payload rows{};  ///< RowLayout
  static auto fields(auto& of) { return std::tie(of.table, of.number, of.rows); }
};

/// A push without rows. It states that all pushes of `steps` steps came before it. With `meets` the worker waits until
/// all workers have marked these steps or, if `steps` is 0, have come to this meeting.
struct MarkRows {
  std::uint32_t table = 0;
  std::uint64_t number = 0;
  Clock steps = 0;  ///< 0: it states no number of steps
  bool meets = false;
  Clock meeting = 0;  ///< a begin or end of a visit (RowMarks)
  static auto fields(auto& of) { return std::tie(of.table, of.number, of.steps, of.meets, of.meeting); }
};

/// Requests rows. Answered by PulledRows, which repeats `request`.
struct PullRows {
  std::uint32_t table = 0;
  std::uint64_t request = 0;
  std::uint64_t pushes = 0;  ///< number of the worker's pushes that the answer contains
  Payload ids{};
  static auto fields(auto& of) { return std::tie(of.table, of.request, of.pushes, of.ids); }
};

/// Requests a slab of a table. Answered by VisitedRows, which repeats `request`.
struct VisitRows {
  std::uint32_t table = 0;
  std::uint64_t request = 0;
  std::uint64_t pushes = 0;  ///< as in PullRows
  std::uint64_t slab = 0;
  static auto fields(auto& of) { return std::tie(of.table, of.request, of.pushes, of.slab); }
};

/// The setup is accepted.
struct Welcome {
  Clock least = 0;            ///< the newest step of any block
  Clock last = 0;             ///< the newest step of this worker
  Clock snapshot_every = 0;   ///< the server writes a snapshot of every such step; 0: never
  std::uint64_t origin = 0;   ///< identifies the tables of this server since they were created or restored,
  Clock origin_step = 0;      ///< at this step
  std::uint32_t origins = 0;  ///< of the first Hello that identified all servers' tables; 0: none yet
  Clock meeting = 0;          ///< the last begin or end of a visit that the worker has come to, or is excused from
  static auto fields(auto& of) {
    return std::tie(of.least, of.last, of.snapshot_every, of.origin, of.origin_step, of.origins, of.meeting);
  }
};

struct Weights {
  std::uint32_t block = 0;
  Clock least = 0;            ///< number of every worker's steps that they hold
  Clock last = 0;             ///< of this worker's,
  std::uint32_t piece = 0;    ///< with this push of them
  Clock step = 0;             ///< that Rule::last_step allows
  std::uint64_t version = 0;  ///< that the worker holds with them
  bool is_coded = false;      ///< `values` has packets (packets_of)
  bool is_unasked = false;    ///< they answer no request; the worker answers by Seen
  Payload values{};
  static auto fields(auto& of) {
    return std::tie(of.block, of.least, of.last, of.piece, of.step, of.version, of.is_coded, of.is_unasked, of.values);
  }
};

/// Rule::sees_clocks, before the Weights of the block: the clocks of all workers, each a little-endian u64.
struct Clocks {
  std::uint32_t block = 0;
  Payload clocks{};
  static auto fields(auto& of) { return std::tie(of.block, of.clocks); }
};
/// Another worker waits for all updates of the first `least` steps.
struct Want {
  Clock least = 0;
  static auto fields(auto& of) { return std::tie(of.least); }
};

/// The worker receives this error. The stream ends.
struct Refuse {
  ErrorKind kind = ErrorKind::misuse;
  Payload reason{};
  static auto fields(auto& of) { return std::tie(of.kind, of.reason); }
};

/// The server's status, for an observer. The stream ends.
struct StatusReport {
  Payload status{};
  static auto fields(auto& of) { return std::tie(of.status); }
};

/// All pushes of the worker up to this number are applied.
struct PushedRows {
  std::uint32_t table = 0;
  std::uint64_t number = 0;
  static auto fields(auto& of) { return std::tie(of.table, of.number); }
};

/// The rows of a PullRows, in its order.
struct PulledRows {
  std::uint32_t table = 0;
  std::uint64_t request = 0;
  Payload rows{};
  static auto fields(auto& of) { return std::tie(of.table, of.request, of.rows); }
};

struct VisitedRows {
  std::uint32_t table = 0;
  std::uint64_t request = 0;
  std::uint64_t slabs = 0;  ///< of the table on this server
  std::uint64_t rows = 0;   ///< in the slab
  Payload slab{};           ///< RowLayout; empty without rows
  static auto fields(auto& of) { return std::tie(of.table, of.request, of.slabs, of.rows, of.slab); }
};

using BlockRequest = std::variant<Push, Fetch>;
using RowPush = std::variant<PushRows, RestoreRows, MarkRows>;
using WorkerMessage =
    std::variant<Hello, FirstValues, Push, Fetch, Finish, PushRows, RestoreRows, MarkRows, PullRows, VisitRows, Seen>;
using ServerMessage =
    std::variant<Welcome, Weights, Want, Refuse, StatusReport, PushedRows, PulledRows, VisitedRows, Clocks>;

/// The alternative of a variant as one of a variant with more of them.
template <class Wide, class Narrow>
[[nodiscard]] Wide widened(Narrow&& message) {
  return std::visit([](auto&& alternative) { return Wide(std::forward<decltype(alternative)>(alternative)); },
                    std::forward<Narrow>(message));
}

/// Functions for the alternatives of a variant.
template <class... Functions>
struct OneOf : Functions... {
  using Functions::operator()...;
};

}  // namespace syncopate::server
