// Collectives: every rank of a group calls the same function with equal type, count, operation, root and name.
#pragma once

#include <chrono>
#include <compare>
#include <exception>
#include <functional>
#include <memory>
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

/// What some algorithms can be told beside their name; 0 and "auto" leave it to them. Others do not look at it.
struct Tuning {
  std::uint32_t blocks = 0;    ///< pipeline blocks: linear_pipeline, binary_tree, double_binary_tree
  std::uint32_t rows = 0;      ///< torus_2d: a grid of rows x columns <= ranks; 0: the most square one that uses
  std::uint32_t columns = 0;   ///< every rank
  std::string inner = "auto";  ///< hierarchical: the algorithm within hosts
  std::string outer = "auto";  ///< hierarchical: the algorithm between hosts
  friend auto operator<=>(const Tuning&, const Tuning&) = default;
};

struct CollectiveOptions {
  ReduceOp op = ReduceOp::sum;
  int root = 0;                    ///< broadcast, reduce, gather and scatter only
  std::string algorithm = "auto";  ///< a name from the catalogue (`syncopate info`)
  std::string name;                ///< the tensor, for error messages; must be equal on all ranks
  Tuning tuning;                   ///< must be equal on all ranks
  Scope scope = Scope::group;      ///< which ranks it runs over; must be equal on all ranks
  friend bool operator==(const CollectiveOptions&, const CollectiveOptions&) = default;
};

/// An operation under way. Its buffers must stay alive and untouched until it has ended. Copies stand for the same
/// operation. Thread-safe.
class Work final {
 public:
  /// Gets what the operation threw; null where it threw nothing.
  using Callback = std::function<void(std::exception_ptr error)>;
  class State;

  explicit Work(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}

  /// Returns when the operation has ended; throws what the operation threw.
  void wait() const;
  /// As `wait`, but returns false when so much time has passed before.
  [[nodiscard]] bool wait_for(std::chrono::nanoseconds bound) const;
  [[nodiscard]] bool ready() const;
  /// Calls `callback` once the operation has ended: at once, on this thread, if it has; else on the group's thread,
  /// which carries out nothing else meanwhile. There it may start operations of the group but not wait for them, and
  /// what it throws aborts the group. `wait` may return before it has been called.
  void then(Callback callback) const;

 private:
  std::shared_ptr<State> state_;
};

// All but alltoall and alltoall_v work in place on `data`, and all throw Misuse, PeerLost, Timeout, Mismatch,
// RemoteFailure or Corrupt. Results are bitwise equal on all ranks and from run to run at equal ranks. "Part r" is
// even_part(count, size, r).
// With a scope below the group every rank of the group makes the call, and every host (or every place across hosts)
// carries it out for itself: "every rank", "size", roots, parts and averages are those of Group::scope_ranks. Types,
// counts and names may differ from host to host.

/// Every rank ends with the reduction of all ranks' vectors.
void allreduce(Group& group, Buffer data, const CollectiveOptions& options = {});
/// Rank r ends with part r reduced; the rest of `data` is left unspecified.
Range reduce_scatter(Group& group, Buffer data, const CollectiveOptions& options = {});
/// Rank r brings part r; every rank ends with all of them.
void allgather(Group& group, Buffer data, const CollectiveOptions& options = {});
/// Rank r brings parts[r] elements, behind those of the ranks before it; every rank ends with all of them. `parts` is
/// the same on all ranks and its sum is data.count.
void allgather_v(Group& group, Buffer data, std::span<const std::size_t> parts, const CollectiveOptions& options = {});
/// Every rank ends with the root's vector.
void broadcast(Group& group, Buffer data, const CollectiveOptions& options = {});
/// The root ends with the reduction; other ranks' `data` is left unspecified.
void reduce(Group& group, Buffer data, const CollectiveOptions& options = {});
/// Rank r brings part r; the root ends with all of them. Other parts of other ranks' `data` are left unspecified.
void gather(Group& group, Buffer data, const CollectiveOptions& options = {});
/// Rank r ends with part r of the root's vector. Other parts of other ranks' `data` are left unspecified.
Range scatter(Group& group, Buffer data, const CollectiveOptions& options = {});
/// Part r of `in` goes to rank r, which finds it as the part of `out` that bears the sender's number. The count of both
/// is a multiple of the ranks; they must not overlap, and `in` is left as it is.
void alltoall(Group& group, Buffer in, Buffer out, const CollectiveOptions& options = {});
/// A vector in parts, one for each rank: part r has lengths[r] elements and lies behind those before it.
struct Parts {
  Buffer data;
  std::span<const std::size_t> lengths;  ///< their sum is data.count
};
/// Part r of `in` goes to rank r, which finds it as the part of `out` that bears the sender's number. Every rank gives
/// its own lengths; what one rank sends is what the other expects, else both throw Mismatch. The vectors must not
/// overlap, and `in` is left as it is.
void alltoall_v(Group& group, const Parts& in, const Parts& out, const CollectiveOptions& options = {});
/// Returns when every rank has called it. Only the options' algorithm and scope count.
void barrier(Group& group, const CollectiveOptions& options = {});

// Between two ranks. Messages from one rank to another arrive in the order in which they were sent, and with the
// collectives around them: both ranks call the same number of collectives before and after a message. Two ranks that
// want each other's data at once call `exchange`, or `start_send` and `start_recv`: messages that were started with no
// collective between them are under way together, in the order of the calls between two ranks only. Two `send`s
// cannot cross: each may wait for the other rank's `recv`.

/// Returns when `data` may be changed again. `options.name` counts; a count, type or name that differs is a Mismatch.
void send(Group& group, int to, Buffer data, const CollectiveOptions& options = {});
void recv(Group& group, int from, Buffer data, const CollectiveOptions& options = {});
/// What goes to a rank, or comes from it.
struct Message {
  int peer = 0;
  Buffer data;
};
/// Sends one message while receiving one, perhaps from another rank, of the same type; the buffers must
/// not overlap.
void exchange(Group& group, const Message& out, const Message& in, const CollectiveOptions& options = {});

/// What `start` is to carry out.
struct Call {
  Collective collective = Collective::allreduce;
  Buffer data;
  Buffer out;                          ///< alltoall and alltoall_v only
  std::vector<std::size_t> parts;      ///< of `data`; allgather_v and alltoall_v only
  std::vector<std::size_t> out_parts;  ///< of `out`; alltoall_v only
};

/// The same without waiting: a thread of the group's carries operations out in the order of the calls, and messages
/// together.
[[nodiscard]] Work start(Group& group, Collective collective, Buffer data, const CollectiveOptions& options = {});
[[nodiscard]] Work start(Group& group, Call call, const CollectiveOptions& options = {});
[[nodiscard]] Work start_send(Group& group, int to, Buffer data, const CollectiveOptions& options = {});
[[nodiscard]] Work start_recv(Group& group, int from, Buffer data, const CollectiveOptions& options = {});

}  // namespace syncopate
