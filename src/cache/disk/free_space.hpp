// Free space of the records' file: gaps between kept records, and the space after the last one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "cache/disk/index.hpp"

namespace syncopate::cache::disk {

class FreeSpace final {
 public:
  FreeSpace() = default;
  /// `rows` do not overlap and are sorted by offset.
  explicit FreeSpace(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
      if (row.offset > end_) gaps_.emplace(row.offset - end_, end_);
      end_ = row.offset + row.length;
    }
  }

  /// Allocates `length` bytes and returns their offset: in the smallest gap that is large enough, otherwise at the end
  /// if that stays within `limit`; nullopt if neither has room.
  [[nodiscard]] std::optional<std::uint64_t> take(std::uint64_t length, std::uint64_t limit) {
    const auto gap = gaps_.lower_bound(length);
    if (gap == gaps_.end()) {
      if (end_ > limit || length > limit - end_) return std::nullopt;
      end_ += length;
      return end_ - length;
    }
    const auto [size, offset] = *gap;
    gaps_.erase(gap);
    if (size > length) gaps_.emplace(size - length, offset + length);
    return offset;
  }

 private:
  std::multimap<std::uint64_t, std::uint64_t> gaps_;  ///< length to offset
  std::uint64_t end_ = 0;
};

}  // namespace syncopate::cache::disk
