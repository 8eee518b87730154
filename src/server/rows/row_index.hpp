// RowIndex: where a server keeps the row of an id: a hash table with open addressing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <random>
#include <utility>

#include "base/random.hpp"

namespace syncopate::server {

/// Rows are never removed, so that a free slot ends every search. Law: no call takes time in proportion to the number
/// of rows, whatever the ids are: an id's slot depends on a seed, which no user knows, and which changes nothing but
/// slots. While the index grows it has two tables: each insertion moves a few slots, and a search reads both tables.
class RowIndex final {
 public:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  /// Slots that an insertion moves. A table of n slots replaces one of n / 2, and n / 4 insertions later it is replaced
  /// itself: 2 would suffice. With more of them searches read both tables for a shorter time.
  static constexpr std::size_t kMovedAtOnce = 32;

  explicit RowIndex(std::uint64_t seed = drawn_seed()) : seed_(seed) {}

  /// The row's place, or kNone.
  [[nodiscard]] std::uint64_t find(std::uint64_t id) const noexcept {
    const std::uint64_t hash = hash_of(id), number = table_.slot_of(id, hash).number;
    return (number == 0 && !smaller_.is_empty() ? smaller_.slot_of(id, hash).number : number) - 1;
  }
  void prefetch(std::uint64_t id) const noexcept {
    const std::uint64_t hash = hash_of(id);
    table_.prefetch(hash);
    if (!smaller_.is_empty()) smaller_.prefetch(hash);
  }
  /// The slots of the larger table that a search reads.
  [[nodiscard]] std::size_t probes(std::uint64_t id) const noexcept { return table_.probes(id, hash_of(id)); }
  /// The id has no place yet.
  void insert(std::uint64_t id, std::uint64_t place) {
    if (2 * (size_ + 1) > table_.size()) {
      smaller_ = std::exchange(table_, Table(2 * table_.size()));
      moved_ = 0;
    }
    move_some();
    table_.slot_of(id, hash_of(id)) = {id, place + 1};
    ++size_;
  }
  [[nodiscard]] std::size_t slots() const noexcept { return table_.size(); }
  [[nodiscard]] std::size_t unmoved_slots() const noexcept {
    return smaller_.is_empty() ? 0 : smaller_.size() - moved_;
  }

 private:
  struct Slot {
    std::uint64_t id;
    std::uint64_t number;  ///< place + 1; 0: the slot is free
  };
  /// A power of two of slots, at least half of them free; or none.
  class Table {
   public:
    Table() = default;
    /// `calloc` leaves it to the kernel to clear the pages of a large table, each at its first use.
    explicit Table(std::size_t slots) : slots_(static_cast<Slot*>(std::calloc(slots, sizeof(Slot)))), mask_(slots - 1) {
      if (!slots_) throw std::bad_alloc();
    }
    [[nodiscard]] bool is_empty() const noexcept { return !slots_; }
    [[nodiscard]] std::size_t size() const noexcept { return mask_ + 1; }
    [[nodiscard]] const Slot& operator[](std::size_t i) const noexcept { return slots_[i]; }
    /// Where the id is, or would be.
    [[nodiscard]] Slot& slot_of(std::uint64_t id, std::uint64_t hash) const noexcept {
      std::size_t slot = hash & mask_;
      while (slots_[slot].number != 0 && slots_[slot].id != id) slot = (slot + 1) & mask_;
      return slots_[slot];
    }
    [[nodiscard]] std::size_t probes(std::uint64_t id, std::uint64_t hash) const noexcept {
      const auto last = static_cast<std::size_t>(&slot_of(id, hash) - slots_.get());
      return ((last - hash) & mask_) + 1;
    }
    void prefetch(std::uint64_t hash) const noexcept { __builtin_prefetch(&slots_[hash & mask_]); }

   private:
    struct Free {
      void operator()(Slot* slots) const noexcept { std::free(slots); }
    };
    std::unique_ptr<Slot[], Free> slots_;
    std::size_t mask_ = 0;
  };

  [[nodiscard]] static std::uint64_t drawn_seed() {
    std::random_device device;
    return std::uint64_t{device()} << 32 | device();
  }
  [[nodiscard]] std::uint64_t hash_of(std::uint64_t id) const noexcept { return base::mixed(id ^ seed_); }

  void move_some() {
    if (smaller_.is_empty()) return;
    for (const std::size_t end = std::min(moved_ + kMovedAtOnce, smaller_.size()); moved_ < end; ++moved_)
      if (const Slot& slot = smaller_[moved_]; slot.number != 0) table_.slot_of(slot.id, hash_of(slot.id)) = slot;
    if (moved_ == smaller_.size()) smaller_ = {};
  }

  std::uint64_t seed_;
  Table table_{1024};
  Table smaller_;          ///< unchanged since `table_` replaced it; empty: all of its slots are moved
  std::size_t moved_ = 0;  ///< slots of `smaller_`
  std::size_t size_ = 0;
};

}  // namespace syncopate::server
