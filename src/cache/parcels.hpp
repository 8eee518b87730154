// Parcels: the records that one rank sends to or receives from each other rank in one step, as parts of one vector.
#pragma once

#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "cache/memory.hpp"

namespace syncopate::cache {

/// A record that travels. `place` is its index in the receiver's share.
struct Item {
  std::uint32_t sample = 0;
  std::size_t place = 0;
  std::size_t bytes = 0;       ///< of the form that is sent
  base::ConstBytes decoded{};  ///< at the sender: the decoded form, if it is sent
};

/// A part has one byte per record, the tier it came from, and then the records. Their lengths are known before.
class Parcels final {
 public:
  /// Lays out the parts of a step; keeps the memory of earlier steps. `by_rank` must outlive their use.
  void lay_out(std::span<const std::vector<Item>> by_rank) {
    by_rank_ = by_rank;
    lengths_.clear();
    std::size_t total = 0;
    for (const std::vector<Item>& items : by_rank_) {
      std::size_t length = items.size();
      for (const Item& item : items) length += item.bytes;
      lengths_.push_back(length);
      total += length;
    }
    bytes_.resize(total);
  }

  [[nodiscard]] const std::vector<std::size_t>& lengths() const noexcept { return lengths_; }
  [[nodiscard]] base::Bytes bytes() noexcept { return bytes_; }

  /// Calls `visit(item, tier byte, record)` for every record.
  template <class Visit>
  void each(const Visit& visit) {
    base::Bytes rest = bytes_;
    for (const std::vector<Item>& items : by_rank_) {
      const base::Bytes tiers = rest.first(items.size());
      rest = rest.subspan(items.size());
      for (std::size_t i = 0; i < items.size(); ++i) {
        visit(items[i], tiers[i], rest.first(items[i].bytes));
        rest = rest.subspan(items[i].bytes);
      }
    }
  }

 private:
  std::span<const std::vector<Item>> by_rank_;
  std::vector<std::size_t> lengths_;
  std::vector<std::byte> bytes_;
};

}  // namespace syncopate::cache
