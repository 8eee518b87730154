// Partition: which rank holds which record, the same on every rank, because each computes it from the same calls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace syncopate::cache {

/// Bytes that one rank has left for records.
struct Room {
  std::uint64_t disk = 0;  ///< records and rows of the index
  std::uint64_t memory = 0;
};

inline constexpr int kNobody = -1;

class Partition final {
 public:
  Partition(std::size_t samples, std::vector<Room> rooms);

  /// `rank` has the record on its disk from an earlier run, `bytes` long. Of several ranks the first call counts, so
  /// the caller begins with the one whom it prefers. False if the record has a holder already, or the room is not
  /// there.
  bool found(std::uint32_t sample, std::uint64_t bytes, int rank);
  /// The rank that holds the record; at its first call the record gets a holder for good: `taker` where it has room,
  /// else the rank with the most, else nobody.
  [[nodiscard]] int holder_of(std::uint32_t sample, std::uint64_t bytes, int taker);
  /// The holder if there is one yet.
  [[nodiscard]] int known_holder_of(std::uint32_t sample) const noexcept { return std::max(holders_[sample], kNobody); }

 private:
  std::vector<std::int32_t> holders_;
  std::vector<Room> rooms_;
};

}  // namespace syncopate::cache
