// Collectives: every rank of a group calls the same function with equal type, count, operation, root and name.
#pragma once

#include <future>
#include <string>

#include "syncopate/dtype.hpp"
#include "syncopate/group.hpp"

namespace syncopate {

enum class Collective : std::uint8_t { allreduce, reduce_scatter, allgather, broadcast, reduce, barrier };
inline constexpr Collective kCollectives[] = {Collective::allreduce, Collective::reduce_scatter, Collective::allgather,
                                              Collective::broadcast, Collective::reduce,         Collective::barrier};
[[nodiscard]] std::string_view name_of(Collective collective) noexcept;
[[nodiscard]] Collective collective_named(std::string_view name);  ///< throws Misuse, naming the allowed names

struct CollectiveOptions {
  ReduceOp op = ReduceOp::sum;
  int root = 0;                    ///< broadcast and reduce only
  std::string algorithm = "auto";  ///< a name from the catalogue (`syncopate info`)
  std::string name;                ///< the tensor, for error messages; must be equal on all ranks
  friend bool operator==(const CollectiveOptions&, const CollectiveOptions&) = default;
};

/// An operation under way. Its buffer must stay alive and untouched until `wait` returns or throws.
class Work final {
 public:
  explicit Work(std::shared_future<void> done) : done_(std::move(done)) {}
  void wait() { done_.get(); }  ///< throws what the operation threw
  [[nodiscard]] bool ready() const { return done_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }

 private:
  std::shared_future<void> done_;
};

// All work in place on `data`, and throw Misuse, PeerLost, Timeout, Mismatch, RemoteFailure or Corrupt.
// Results are bitwise equal on all ranks and from run to run at equal ranks.

/// Every rank ends with the reduction of all ranks' vectors.
void allreduce(Group& group, Buffer data, const CollectiveOptions& options = {});
/// Rank r ends with elements even_part(count, size, r) reduced; the rest of `data` is left unspecified.
Range reduce_scatter(Group& group, Buffer data, const CollectiveOptions& options = {});
/// Rank r brings elements even_part(count, size, r); every rank ends with all of them.
void allgather(Group& group, Buffer data, const CollectiveOptions& options = {});
/// Every rank ends with the root's vector.
void broadcast(Group& group, Buffer data, const CollectiveOptions& options = {});
/// The root ends with the reduction; other ranks' `data` is left unspecified.
void reduce(Group& group, Buffer data, const CollectiveOptions& options = {});
/// Returns when every rank has called it.
void barrier(Group& group);

/// The same without waiting: a thread of the group's carries operations out in the order of the calls.
[[nodiscard]] Work start(Group& group, Collective collective, Buffer data, const CollectiveOptions& options = {});

}  // namespace syncopate
