// A group: the ranks of one job that exchange data, and how a process joins it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/log.hpp"

namespace syncopate {

/// The links of a group's ranks.
enum class TransportChoice : std::uint8_t {
  automatic,  ///< "auto": shared memory within a host, TCP between hosts
  tcp,
  shm  ///< all ranks run on one host
};
inline constexpr TransportChoice kTransportChoices[] = {TransportChoice::automatic, TransportChoice::tcp,
                                                        TransportChoice::shm};
[[nodiscard]] std::string_view name_of(TransportChoice choice) noexcept;
[[nodiscard]] TransportChoice transport_named(std::string_view name);  ///< throws Misuse, naming the allowed names

/// Whether connections between ranks are encrypted.
enum class TlsChoice : std::uint8_t {
  automatic,  ///< "auto": if an address is public
  on,         ///< needs a secret
  off
};
inline constexpr TlsChoice kTlsChoices[] = {TlsChoice::automatic, TlsChoice::on, TlsChoice::off};
[[nodiscard]] std::string_view name_of(TlsChoice choice) noexcept;
[[nodiscard]] TlsChoice tls_named(std::string_view name);  ///< throws Misuse, naming the allowed names

/// Every field is optional. A field that is not set is taken from the environment: from SYNCOPATE_*, then from the
/// variables of torchrun, Open MPI, MPICH, Slurm and PMI; the log (level info) names the source. If no source sets a
/// size, the group has one rank. The other fields have the default given after the semicolon. Groups of threads ignore
/// the environment.
struct GroupOptions {
  std::optional<int> rank;
  std::optional<int> size;
  /// "tcp://host:port" (rank 0 listens there), "file:///folder" (empty or new) or "local://name" (one host).
  std::string rendezvous;
  std::string interface;         ///< name or address to listen on and send from; empty: the one that reaches the tcp://
                                 ///< rendezvous, else loopback
  std::string secret_file;       ///< the job's secret; required unless every address is loopback
  std::optional<TlsChoice> tls;  ///< automatic
  std::optional<std::chrono::milliseconds> timeout;       ///< limit of one collective while all ranks live; 120 s
  std::optional<std::chrono::milliseconds> join_timeout;  ///< limit of joining; 60 s; both at most a year
  /// A rank is lost if no heartbeat arrives from it for this long; it sends eight in this time. 2 s, at least 100 ms.
  std::optional<std::chrono::milliseconds> silence;
  std::optional<TransportChoice> transport;        ///< automatic
  std::optional<std::chrono::microseconds> spin;   ///< how long a blocking call polls before it sleeps; 50 us
  std::optional<std::chrono::microseconds> delay;  ///< delays every message, to emulate a slower network; 0
  std::optional<int> streams;                      ///< TCP connections per pair of ranks, 1..16; 1
  int ranks_per_host = 0;  ///< treat this many neighbouring ranks as one host (equal on all ranks); 0: the real hosts
  std::string cluster;     ///< cluster file that algorithm "auto" uses; rank 0's is used everywhere; empty: usual costs
  std::optional<bool> checksum;  ///< checksum payloads too (headers always are); false
  Log log;
  /// Called about ten times a second while a collective, a message or Synchronizer::wait waits, on the waiting thread
  /// (for started operations on the group's own thread). An interpreter handles its signals there. A std::exception
  /// that it throws aborts the group and ends the wait. Empty: not called.
  std::function<void()> while_waiting;
};

/// The ranks of a group over which a collective runs. Hosts are real, or those that GroupOptions::ranks_per_host
/// defines.
enum class Scope : std::uint8_t {
  group,   ///< all ranks
  host,    ///< the ranks of this rank's host
  across,  ///< one rank per host: those with this rank's index on their host. If the smallest host has k ranks, a rank
           ///< with index k or more is in no set: its call returns at once and leaves its data unchanged
};
[[nodiscard]] std::string_view name_of(Scope scope) noexcept;
[[nodiscard]] Scope scope_named(std::string_view name);  ///< throws Misuse, naming the allowed names

/// Bytes that this rank has sent and received, headers included.
struct Traffic {
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;
};

/// One rank's membership in a group. Collectives (collective.hpp) take it by reference; every rank calls the same
/// ones in the same order. After an error every call throws that error again; to recover, join another group.
/// Thread-safe: calls from several threads run in the order in which they arrive.
/// A child that is forked without exec shares nothing with the group: its copy throws Misuse when it is used and does
/// nothing when it is destroyed. Memory from `allocate` that processes share is not mapped in the child.
class Group final {
 public:
  /// Joins the job that options and environment describe. Throws Misuse, Timeout (names the missing ranks),
  /// Unauthorized, SystemFailure.
  [[nodiscard]] static std::unique_ptr<Group> join(const GroupOptions& options = {});
  /// A group of `size` ranks inside this process, each for one thread; result i has rank i.
  [[nodiscard]] static std::vector<std::unique_ptr<Group>> threads(int size, const GroupOptions& options = {});

  /// Splits the group by colour, as MPI_Comm_split does: ranks with the same colour form a new group, in the order of
  /// (key, rank); the result is null for a negative colour. Every rank calls it. A sub-group has its own connections,
  /// operations and failures, and another thread may use it at the same time as this group.
  [[nodiscard]] std::unique_ptr<Group> split(int color, int key);

  /// Leaves the group; aborts it if the destructor runs because of an exception. Operations that were started end
  /// first: with their result, or with an error after `timeout` at the latest. Then it relays control messages for its
  /// neighbours until they have connected around it, for at most a second or until a neighbour that does not answer is
  /// lost.
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int size() const noexcept;
  [[nodiscard]] const std::string& transport() const noexcept;  ///< "shm", "tcp", "shm+tcp", "inproc"
  /// The host number of each rank. Hosts are numbered from 0 in the order of their first ranks.
  [[nodiscard]] const std::vector<int>& hosts() const noexcept;
  /// The ranks of this rank's set under that scope, in ascending order; empty if it is in none.
  [[nodiscard]] const std::vector<int>& scope_ranks(Scope scope) const noexcept;
  /// This rank's index in scope_ranks, which is its number in such calls (roots, parts); -1 if it is in no set.
  [[nodiscard]] int scope_rank(Scope scope) const noexcept;
  [[nodiscard]] Traffic traffic() const noexcept;
  /// Changes GroupOptions::timeout, for collectives and messages that begin after this call. It may differ between
  /// ranks.
  void set_timeout(std::chrono::milliseconds timeout);
  /// Allocates memory for a vector: zeroed, on separate pages. It may outlive the group. Ranks of the same host access
  /// it directly: vectors there are reduced and gathered in place, while other vectors are copied through shared
  /// memory. Compare MPI_Alloc_mem. After the group has failed the contents are undefined, because a rank that was
  /// stopped during an operation may still write there. Between threads, and between hosts, it is ordinary memory.
  /// Throws Misuse for a size beyond the address space, SystemFailure if there is not enough memory.
  template <class T = std::byte>
  [[nodiscard]] std::shared_ptr<T[]> allocate(std::size_t elements) {
    const auto bytes = allocate_bytes(elements, sizeof(T));
    return {bytes, reinterpret_cast<T*>(bytes.get())};
  }
  /// Aborts the group: from now on every call, on every rank, throws RemoteFailure with this text.
  void abort(const std::string& reason, const std::string& tensor = {}) noexcept;

 private:
  class Impl;
  friend class GroupAccess;
  explicit Group(std::unique_ptr<Impl> impl);
  [[nodiscard]] std::shared_ptr<std::byte[]> allocate_bytes(std::size_t elements, std::size_t width);
  std::unique_ptr<Impl> impl_;
};

}  // namespace syncopate
