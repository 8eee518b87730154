// The distributed data cache: each rank holds a part of a data set; no record is read twice from its origin.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "syncopate/group.hpp"
#include "syncopate/input.hpp"
#include "syncopate/log.hpp"

namespace syncopate::cache {

/// Memory and disk that one rank contributes; ranks may contribute different amounts.
struct Options {
  std::uint64_t memory_bytes = 0;  ///< bytes of records kept in memory
  std::string folder;              ///< on a local disk; rank r writes into FOLDER/rank-r; empty: no disk
  std::uint64_t disk_bytes = 0;    ///< limit of the records and their index on disk
  /// Bytes of decoded forms kept in memory, in addition to memory_bytes, of records that this rank holds. 0: none.
  std::uint64_t decoded_bytes = 0;
  Log log;
  /// For readers that form no group, such as workers of a parameter server, with a group of one rank: the part of every
  /// step that this reader reads, and the number of its folder. It holds what it has read itself.
  int part = 0, parts = 1;
};

/// Records of one epoch that came from one place. `seconds` is the time that this rank read there, for itself and for
/// others; for `peers` it is the time it waited for the exchange.
struct Tally {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;
};

/// The places from which this rank's records of an epoch came. Each record counts once: summed over all ranks the
/// tallies count the records used, and `origin` counts reads of the source.
struct Counters {
  std::uint64_t epoch = 0;
  Tally memory;               ///< this rank's own
  Tally disk;                 ///< this rank's own
  Tally peers;                ///< memory or disk of another rank
  Tally origin;               ///< the source, read by this rank or, on its behalf, by the record's holder
  std::uint64_t decoded = 0;  ///< records of `memory` and `peers` that came in their decoded form
  std::uint64_t damaged = 0;  ///< damaged records on this rank's disk, which were read again from the origin
};

/// A reader for which all ranks together hold the records of a source, each record on at most one rank. The rank that
/// first uses a record holds it if it has room; otherwise the rank with the most room does. Every rank computes the
/// holder without communication. An epoch uses each record once, so a held record is never evicted. After a restart,
/// records found on the disks are assigned first. An error of the origin is thrown on the rank that uses the record;
/// other ranks and later steps are unaffected. Records that the disk refuses or loses are read from the origin again,
/// and the log reports it.
class Cache final : public input::Reader {
 public:
  /// Every rank of `group` calls it, with its own connections to the same source and the seed of the order. The cache
  /// exchanges over a sub-group of its own, so another thread may use `group` meanwhile. `source` must outlive the
  /// cache. Throws Mismatch (ranks with different sources or seeds), SystemFailure (the folder cannot be used, or
  /// another process uses it), PeerLost, Timeout.
  [[nodiscard]] static std::unique_ptr<Cache> form(Group& group, const input::Source& source, std::uint64_t seed,
                                                   const Options& options);
  ~Cache() override;
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  /// Collective. Throws Mismatch if ranks read different steps, and the errors of the group's collectives; every later
  /// call then throws the same error.
  [[nodiscard]] std::vector<input::Record> read(const input::Step& step) override;
  /// From now on this rank keeps the decoded form instead of the record in its memory, and uses and sends it.
  void keep(std::uint32_t sample, std::vector<std::byte> decoded) override;
  /// One row for each started epoch, in order. Any thread may call it.
  [[nodiscard]] std::vector<Counters> counters() const;
  /// Ends a read that waits for other ranks. From now on reads of any rank that exchange records throw RemoteFailure
  /// with this text. Any thread may call it.
  void abort(const std::string& reason) noexcept;

 private:
  class Impl;
  explicit Cache(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Wraps `source` and limits the rate of all its readers together, to emulate a network file system. A token bucket
/// allows a burst of 64 KiB after a pause. `source` must outlive the result. Throws Misuse for a rate that is not
/// positive.
[[nodiscard]] std::unique_ptr<input::Source> throttled(const input::Source& source, double bytes_per_second);

}  // namespace syncopate::cache
