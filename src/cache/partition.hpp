// Partition: the holder of each record, which every rank computes from data that ranks exchange once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "syncopate/group.hpp"

namespace syncopate::cache {

/// Bytes that one rank has free for records.
struct Room {
  std::uint64_t disk = 0;  ///< records and rows of the index
  std::uint64_t memory = 0;
};

inline constexpr int kNobody = -1;

class Partition final {
 public:
  Partition(std::size_t samples, std::vector<Room> rooms);

  /// `rank` has the record of `bytes` bytes on its disk from an earlier run. If several ranks have it, the first call
  /// decides, so the caller starts with the preferred rank. False if the record already has a holder, or there is no
  /// room.
  bool found(std::uint32_t sample, std::uint64_t bytes, int rank);
  /// The rank that holds the record. The first call assigns it permanently: `taker` if it has room, else the rank with
  /// the most room, else none.
  [[nodiscard]] int holder_of(std::uint32_t sample, std::uint64_t bytes, int taker);
  /// The holder, if one is assigned already.
  [[nodiscard]] int known_holder_of(std::uint32_t sample) const noexcept { return std::max(holders_[sample], kNobody); }

 private:
  std::vector<std::int32_t> holders_;
  std::vector<Room> rooms_;
};

/// The data that one rank contributes to the agreement.
struct Statement {
  std::uint64_t version = 0, records = 0, seed = 0;  ///< equal on all ranks
  Room room;
  std::uint64_t decoded = 0;           ///< bytes for decoded forms
  std::vector<std::uint32_t> on_disk;  ///< records that its disk has from an earlier run
};

/// Gathers every rank's statement on every rank. Throws Mismatch if ranks read different sets or use different seeds
/// (RemoteFailure on a rank that another rank's exception reaches first).
[[nodiscard]] std::vector<Statement> agree(Group& group, const Statement& mine);

}  // namespace syncopate::cache
