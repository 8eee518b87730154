// A group: the ranks of one job that exchange data, and how a process joins it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/log.hpp"

namespace syncopate {

/// Everything is optional. What is not given is taken from the environment: SYNCOPATE_*, then torchrun, Open MPI,
/// MPICH, Slurm and PMI variables; the log (level info) says which won. With none of them the group has one rank, and
/// the rest is as stated behind the semicolon. Groups of threads look at no environment.
struct GroupOptions {
  std::optional<int> rank;
  std::optional<int> size;
  std::string
      rendezvous;  ///< "tcp://host:port" (rank 0 listens there) or "file:///folder" (empty or new), "local://name"
  std::string interface;    ///< name or address to listen on and send from; empty: what faces tcp://, else loopback
  std::string secret_file;  ///< the job's secret; required unless every address is loopback
  std::optional<std::chrono::milliseconds>
      timeout;  ///< bound of collectives while all ranks live, a year at most; 120 s
  std::optional<std::chrono::milliseconds> join_timeout;  ///< bound of joining, a year at most; 60 s
  std::optional<std::chrono::milliseconds> silence;       ///< a rank without a heartbeat for so long is lost; 2 s
  std::string transport;  ///< "auto" (shared memory within a host, TCP between hosts; the default), "tcp", "shm"
  std::optional<std::chrono::microseconds> spin;   ///< a blocking call waits awake so long, then sleeps; 50 us
  std::optional<std::chrono::microseconds> delay;  ///< each message leaves so much later: a slower network, emulated; 0
  std::optional<int> streams;                      ///< TCP connections per pair of ranks, 1..16; 1
  int ranks_per_host = 0;  ///< so many neighbouring ranks count as one host (equal on all ranks); 0: as they tell
  std::string cluster;     ///< file of `syncopate fit`: algorithm "auto" goes by it; rank 0's holds; empty: usual costs
  std::optional<bool> checksum;  ///< checksum payloads too (headers always are); false
  Log log = log_from_environment();
};

/// The ranks of a group over which a collective runs. Hosts are those that GroupOptions::ranks_per_host makes, if
/// given.
enum class Scope : std::uint8_t {
  group,   ///< all of them
  host,    ///< those of this rank's host
  across,  ///< those of equal place on every host. There are as many places as the smallest host has ranks; a rank
           ///< beyond them has no counterparts: its call leaves the data as it is and returns at once
};
[[nodiscard]] std::string_view name_of(Scope scope) noexcept;
[[nodiscard]] Scope scope_named(std::string_view name);  ///< throws Misuse, naming the allowed names

/// Bytes this rank has put on and taken from the wire, headers included.
struct Traffic {
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;
};

/// One rank's membership in a group. Collectives (collective.hpp) take it by reference; every rank calls the same
/// ones in the same order. After an error the group repeats that error on every call: recovery is another group.
/// Thread-safe; calls from several threads are served in the order in which they arrive.
class Group final {
 public:
  /// Joins the job that options and environment describe. Throws Misuse, Timeout (naming the ranks that did not
  /// come), Unauthorized, SystemFailure.
  [[nodiscard]] static std::unique_ptr<Group> join(const GroupOptions& options = {});
  /// `size` ranks inside this process, to be used by one thread each; result i has rank i.
  [[nodiscard]] static std::vector<std::unique_ptr<Group>> threads(int size, const GroupOptions& options = {});

  /// Parts the group by colour, as MPI_Comm_split does: ranks that give the same colour become a group of their own, in
  /// the order of (key, rank); null for a negative colour. Every rank calls it. A sub-group has connections, operations
  /// and failures of its own, and may be used at the same time as this one by another thread.
  [[nodiscard]] std::unique_ptr<Group> split(int color, int key);

  /// Leaves in order; or, where an exception unwinds its scope, as `abort` does.
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int size() const noexcept;
  [[nodiscard]] const std::string& transport() const noexcept;  ///< "shm", "tcp", "shm+tcp", "inproc"
  /// By rank: the number of the host it runs on. Hosts are numbered from 0 in the order of their first ranks.
  [[nodiscard]] const std::vector<int>& hosts() const noexcept;
  /// The ranks that take part in this rank's calls of that scope, in order. Empty: this rank takes part in none.
  [[nodiscard]] const std::vector<int>& scope_ranks(Scope scope) const noexcept;
  /// This rank's index in scope_ranks, which is its number in such calls (roots, parts); -1 where they are empty.
  [[nodiscard]] int scope_rank(Scope scope) const noexcept;
  [[nodiscard]] Traffic traffic() const noexcept;
  /// Memory for a vector, all zero, on pages of its own; it may outlive the group. The ranks of this host reach it
  /// directly: what lies there is reduced and gathered in place, where vectors elsewhere are copied through memory that
  /// two ranks share. Like MPI_Alloc_mem. After a failure of the group nothing may be kept there: a rank that was
  /// stopped in the midst of an operation may still write to it. Between threads and hosts it is memory as any other.
  /// Throws Misuse for more than an address can reach, SystemFailure where there is no such memory.
  template <class T = std::byte>
  [[nodiscard]] std::shared_ptr<T[]> allocate(std::size_t elements) {
    const auto bytes = allocate_bytes(elements, sizeof(T));
    return {bytes, reinterpret_cast<T*>(bytes.get())};
  }
  /// Tells every rank that this one cannot go on; their calls throw RemoteFailure with this text.
  void abort(const std::string& reason, const std::string& tensor = {}) noexcept;

  class Impl;
  [[nodiscard]] Impl& impl() noexcept { return *impl_; }

 private:
  explicit Group(std::unique_ptr<Impl> impl);
  [[nodiscard]] std::shared_ptr<std::byte[]> allocate_bytes(std::size_t elements, std::size_t width);
  std::unique_ptr<Impl> impl_;
};

}  // namespace syncopate
