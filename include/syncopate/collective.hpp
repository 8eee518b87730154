// Collectives: every rank of a group calls the same function with equal type, count, operation, root and name.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "syncopate/dtype.hpp"
#include "syncopate/group.hpp"

namespace syncopate {

enum class Collective : std::uint8_t {
  allreduce,
  reduce_scatter,
  allgather,
  allgather_v,
  broadcast,
  reduce,
  gather,
  scatter,
  alltoall,
  alltoall_v,
  barrier
};
inline constexpr Collective kCollectives[] = {
    Collective::allreduce, Collective::reduce_scatter, Collective::allgather, Collective::allgather_v,
    Collective::broadcast, Collective::reduce,         Collective::gather,    Collective::scatter,
    Collective::alltoall,  Collective::alltoall_v,     Collective::barrier};
[[nodiscard]] std::string_view name_of(Collective collective) noexcept;
[[nodiscard]] Collective collective_named(std::string_view name);  ///< throws Misuse, naming the allowed names

/// Parameters of certain algorithms; other algorithms ignore them. 0 and "auto" let the algorithm choose.
struct Tuning {
  std::uint32_t blocks = 0;    ///< pipeline blocks: linear_pipeline, binary_tree, double_binary_tree
  std::uint32_t rows = 0;      ///< torus_2d: rows of the grid; rows x columns <= ranks
  std::uint32_t columns = 0;   ///< torus_2d: columns of the grid; both 0: the most square grid of all ranks
  std::string inner = "auto";  ///< hierarchical: the algorithm within hosts
  std::string outer = "auto";  ///< hierarchical: the algorithm between hosts
  friend auto operator<=>(const Tuning&, const Tuning&) = default;
};

struct CollectiveOptions {
  ReduceOp op = ReduceOp::sum;
  int root = 0;                       ///< broadcast, reduce, gather and scatter only
  std::string algorithm = "auto";     ///< a name from the catalogue (`syncopate info`)
  std::string name;                   ///< the tensor, for error messages; must be equal on all ranks
  Tuning tuning;                      ///< must be equal on all ranks
  Scope scope = Scope::group;         ///< the ranks that it runs over; must be equal on all ranks
  std::optional<std::int64_t> tag{};  ///< messages only: matched by this number, see `send`
  friend bool operator==(const CollectiveOptions&, const CollectiveOptions&) = default;
};

/// An operation in progress. Its buffers must stay alive and unchanged until it has ended. Copies refer to the same
/// operation. Thread-safe.
class Work final {
 public:
  /// Receives the operation's exception; null if it threw none.
  using Callback = std::function<void(std::exception_ptr error)>;
  class State;

  explicit Work(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}

  /// Returns when the operation has ended; throws what the operation threw.
  void wait() const;
  /// Waits for at most `bound`; returns false if the operation has not ended by then. Throws what the operation threw.
  [[nodiscard]] bool wait_for(std::chrono::nanoseconds bound) const;
  [[nodiscard]] bool ready() const;
  /// Calls `callback` when the operation has ended: at once on this thread if it already has, else on the group's
  /// thread, which runs no operation meanwhile. A callback may start operations of the group but must not wait for
  /// them; an exception that it throws aborts the group. `wait` may return before the callback is called.
  void then(Callback callback) const;

 private:
  std::shared_ptr<State> state_;
};

// All collectives except alltoall and alltoall_v work in place on `data`. They throw Misuse, PeerLost, Timeout,
// Mismatch, RemoteFailure or Corrupt. Results are bitwise equal on all ranks, and from run to run with equal numbers of
// ranks. "Part r" is even_part(count, size, r). An average is the sum divided by the number of ranks; with integers the
// sum wraps around and the quotient is truncated towards zero.
// A call that throws Misuse counts as a call. If every rank's call is refused, the group remains usable; if only one
// rank's call is, the calls of the others throw Mismatch with the reason.
// With a scope below the group every rank of the group makes the call, and every host (or every set of ranks with equal
// index on their hosts) runs it separately: "every rank", "size", roots, parts and averages refer to
// Group::scope_ranks. Types, counts and names may then differ between these sets.

/// Every rank ends with the reduction of all ranks' vectors.
void allreduce(Group& group, Buffer data, const CollectiveOptions& options = {});
/// Rank r ends with part r reduced; the rest of `data` is unspecified.
Range reduce_scatter(Group& group, Buffer data, const CollectiveOptions& options = {});
/// Rank r contributes part r; every rank ends with all parts.
void allgather(Group& group, Buffer data, const CollectiveOptions& options = {});
/// Rank r contributes parts[r] elements, which follow those of lower ranks; every rank ends with all of them. `parts`
/// is the same on all ranks and its sum is data.count.
void allgather_v(Group& group, Buffer data, std::span<const std::size_t> parts, const CollectiveOptions& options = {});
/// Every rank ends with the root's vector.
void broadcast(Group& group, Buffer data, const CollectiveOptions& options = {});
/// The root ends with the reduction; `data` of the other ranks is unspecified.
void reduce(Group& group, Buffer data, const CollectiveOptions& options = {});
/// Rank r contributes part r; the root ends with all parts. On other ranks all but their own part is unspecified.
void gather(Group& group, Buffer data, const CollectiveOptions& options = {});
/// Rank r ends with part r of the root's vector. On ranks other than the root the rest of `data` is unspecified.
Range scatter(Group& group, Buffer data, const CollectiveOptions& options = {});
/// Rank s sends part r of its `in` to rank r, which receives it as part s of its `out`. Both buffers have the same
/// count, a multiple of the number of ranks; they must not overlap, and `in` stays unchanged.
void alltoall(Group& group, ConstBuffer in, Buffer out, const CollectiveOptions& options = {});
/// A vector of consecutive parts, one per rank: part r has lengths[r] elements.
struct Parts {
  Buffer data;
  std::span<const std::size_t> lengths;  ///< their sum is data.count
};
/// Consecutive parts of elements that are only read.
struct ConstParts {
  ConstBuffer data;
  std::span<const std::size_t> lengths;
};
/// An alltoall with parts of any lengths. Every rank passes its own lengths. If a sender's length differs from the one
/// that its receiver expects, both throw Mismatch. The buffers must not overlap, and `in` stays unchanged.
void alltoall_v(Group& group, const ConstParts& in, const Parts& out, const CollectiveOptions& options = {});
/// Returns when every rank has called it. Only `options.algorithm` and `options.scope` are used.
void barrier(Group& group, const CollectiveOptions& options = {});

/// Throws Misuse with this text and counts as a collective call. For bindings to other languages, which refuse
/// arguments that the functions above cannot check.
[[noreturn]] void refuse(Group& group, const std::string& reason);

// Messages between two ranks. They arrive in the order in which they were sent, also relative to collectives: sender
// and receiver must have called the same number of collectives before a message. Two `send` calls must not cross,
// because each may wait for the other rank's `recv`. Two ranks that need each other's data at the same time call
// `exchange`, or `start_send` and `start_recv`: started messages with no collective between them are in progress at the
// same time, in the order of the calls only between the same two ranks.

/// Returns when `data` may be reused. Count, type and `options.name` must equal the receiver's, else Mismatch. A
/// message that is refused (Misuse) aborts the group if its peer is a rank of it, because that rank may wait for the
/// message.
/// A message with `options.tag` matches the earliest receive from its rank with the same tag, whatever the order of
/// other tags; its name is only for errors. While a receive waits, messages with other tags are kept in memory until
/// their receives are called: at most 1 GiB, beyond which a Mismatch names the tag. Messages between two ranks with and
/// without tags must be sent and received in the same order.
void send(Group& group, int to, ConstBuffer data, const CollectiveOptions& options = {});
void recv(Group& group, int from, Buffer data, const CollectiveOptions& options = {});
/// A message from a rank.
struct Message {
  int peer = 0;
  Buffer data;
};
/// A message to a rank.
struct ConstMessage {
  int peer = 0;
  ConstBuffer data;
};
/// Sends one message and receives another of the same type at the same time, from the same rank or a third one. The
/// buffers must not overlap.
void exchange(Group& group, const ConstMessage& out, const Message& in, const CollectiveOptions& options = {});

/// The arguments of `start`.
struct Call {
  Collective collective = Collective::allreduce;
  Buffer data;
  Buffer out;                          ///< alltoall and alltoall_v only
  std::vector<std::size_t> parts;      ///< lengths in `data`; allgather_v and alltoall_v only
  std::vector<std::size_t> out_parts;  ///< lengths in `out`; alltoall_v only
};

/// Starts the operation without waiting for it. A thread of the group runs collectives in the order of the calls, and
/// messages concurrently.
[[nodiscard]] Work start(Group& group, Collective collective, Buffer data, const CollectiveOptions& options = {});
[[nodiscard]] Work start(Group& group, Call call, const CollectiveOptions& options = {});
[[nodiscard]] Work start_send(Group& group, int to, ConstBuffer data, const CollectiveOptions& options = {});
[[nodiscard]] Work start_recv(Group& group, int from, Buffer data, const CollectiveOptions& options = {});

}  // namespace syncopate
