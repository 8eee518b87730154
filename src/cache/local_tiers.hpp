// Local tiers: reads this rank's records from memory, else from its disk, else from the origin, and keeps them.
#pragma once

#include <memory>

#include "cache/disk/store.hpp"
#include "cache/memory.hpp"
#include "syncopate/input.hpp"

namespace syncopate::cache {

/// The place a record came from.
enum class Tier : std::uint8_t { memory, disk, origin, lost };

class LocalTiers final {
 public:
  LocalTiers(const input::Source& origin, std::uint64_t memory_bytes, std::unique_ptr<disk::Store> store)
      : origin_(origin), memory_(memory_bytes), store_(std::move(store)) {}

  /// Reads a record that this rank holds. A record from the origin is kept in memory, and on the disk while that has
  /// room, so that the next run finds it. Throws what Source::read throws; the record is then not kept.
  Tier read(std::uint32_t sample, base::Bytes into) {
    if (memory_.read(sample, into)) return Tier::memory;
    if (store_ && store_->read(sample, into)) {
      memory_.keep(sample, into, true);
      return Tier::disk;
    }
    origin_.read(sample, into);
    const bool is_on_disk = store_ && store_->keep(sample, into);
    memory_.keep(sample, into, is_on_disk);
    return Tier::origin;
  }
  [[nodiscard]] std::uint64_t damaged() const noexcept { return store_ ? store_->damaged() : 0; }

 private:
  const input::Source& origin_;
  Memory memory_;
  std::unique_ptr<disk::Store> store_;  ///< null: this rank has no disk
};

}  // namespace syncopate::cache
