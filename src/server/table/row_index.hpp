// RowIndex: where a server keeps the row of an id: a hash table with open addressing.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.hpp"

namespace syncopate::server {

/// Rows are never removed, so that a free slot ends every search.
class RowIndex final {
 public:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  /// The row's place, or kNone.
  [[nodiscard]] std::uint64_t find(std::uint64_t id) const noexcept { return slots_[slot_of(id)].place; }
  void prefetch(std::uint64_t id) const noexcept { __builtin_prefetch(&slots_[base::mixed(id) & mask()]); }
  /// The id has no place yet.
  void insert(std::uint64_t id, std::uint64_t place) {
    if (2 * ++size_ > slots_.size()) grow();
    slots_[slot_of(id)] = {id, place};
  }

 private:
  struct Slot {
    std::uint64_t id = 0, place = kNone;
  };
  [[nodiscard]] std::size_t mask() const noexcept { return slots_.size() - 1; }
  /// Where the id is, or would be.
  [[nodiscard]] std::size_t slot_of(std::uint64_t id) const noexcept {
    std::size_t slot = base::mixed(id) & mask();
    while (slots_[slot].place != kNone && slots_[slot].id != id) slot = (slot + 1) & mask();
    return slot;
  }
  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.place != kNone) slots_[slot_of(slot.id)] = slot;
  }

  std::vector<Slot> slots_ = std::vector<Slot>(1024);  ///< a power of two; at least half of them are free
  std::size_t size_ = 0;
};

}  // namespace syncopate::server
