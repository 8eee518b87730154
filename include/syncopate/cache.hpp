// The cache of a data set that all ranks of a job form: each holds a part of it, and no record is read twice from afar.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "syncopate/group.hpp"
#include "syncopate/input.hpp"
#include "syncopate/log.hpp"

namespace syncopate::cache {

/// What one rank gives to the cache; ranks may give different amounts.
struct Options {
  std::uint64_t memory_bytes = 0;  ///< bytes of records kept in memory
  std::string folder;              ///< on this host's own disk; rank r writes into FOLDER/rank-r. Empty: no disk
  std::uint64_t disk_bytes = 0;    ///< bytes of records and of their index kept there
  Log log = log_from_environment();
};

/// Records of one epoch that came from one place. `seconds` is this rank's time for reading there, for itself and for
/// others; of `peers` it is the time of waiting for the exchange.
struct Tally {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;
};

/// Where the records came from that this rank took in an epoch; each counts once, so the sums over all ranks are what
/// was taken, and `origin` what the origin was read for.
struct Counters {
  std::uint64_t epoch = 0;
  Tally memory;               ///< this rank's own
  Tally disk;                 ///< this rank's own
  Tally peers;                ///< memory or disk of another rank
  Tally origin;               ///< the source, read by this rank or, for it, by the rank that holds the record
  std::uint64_t damaged = 0;  ///< records on this rank's disk that were found damaged and read again from the origin
};

/// A reader whose ranks hold the records of a source together, each record on one rank at most. It is held by the rank
/// that takes it first where that has room, else by the one with the most; all ranks know who, without asking. Since an
/// epoch takes each record once, what is held stays held. After a restart, what the disks hold counts first.
/// Error of the origin: thrown to the rank that takes the record; the other ranks and later steps are unharmed. What
/// the disk refuses or loses is read from the origin again, and said in the log.
class Cache final : public input::Reader {
 public:
  /// Every rank of `group` calls it, with its own connections to the same source and the seed of the order. The cache
  /// exchanges over a sub-group of its own, so another thread may use `group` meanwhile. `source` outlives the cache.
  /// Throws Mismatch (ranks with different sources or seeds), SystemFailure (the folder cannot be used, or another
  /// process does), PeerLost, Timeout.
  [[nodiscard]] static std::unique_ptr<Cache> form(Group& group, const input::Source& source, std::uint64_t seed,
                                                   const Options& options);
  ~Cache() override;
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  /// Collective. Throws Mismatch where ranks read different steps, and the errors of the group's collectives; after one
  /// of these it throws it again at every call.
  [[nodiscard]] std::vector<input::Record> read(const input::Step& step) override;
  /// One row for each epoch that was begun, in order. May be called by another thread than `read`.
  [[nodiscard]] std::vector<Counters> counters() const;

 private:
  class Impl;
  explicit Cache(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// `source`, read at so many bytes a second at most by all who read it together: it stands for a network file system. A
/// token bucket of 64 KiB: after a pause so many bytes come at once. `source` outlives it. Throws Misuse for a rate
/// that is not positive.
[[nodiscard]] std::unique_ptr<input::Source> throttled(const input::Source& source, double bytes_per_second);

}  // namespace syncopate::cache
