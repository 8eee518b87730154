// Local tiers: records kept in memory within a budget, else read from this rank's disk, else from the origin.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/bytes.hpp"
#include "cache/disk/store.hpp"
#include "syncopate/input.hpp"

namespace syncopate::cache {

class Memory final {
 public:
  explicit Memory(std::uint64_t budget) : free_(budget) {}

  [[nodiscard]] bool read(std::uint32_t sample, base::Bytes into) const {
    const auto found = records_.find(sample);
    if (found == records_.end()) return false;
    std::ranges::copy(found->second, into.begin());
    return true;
  }
  /// Keeps a record that is not here, if there is room. A copy of a record on the disk uses only free space; another
  /// record evicts copies.
  void keep(std::uint32_t sample, base::ConstBytes bytes, bool is_copy) {
    while (!is_copy && bytes.size() > free_ && !copies_.empty()) drop_a_copy();
    if (bytes.size() > free_) return;
    records_.emplace(sample, std::vector<std::byte>(bytes.begin(), bytes.end()));
    free_ -= bytes.size();
    if (is_copy) copies_.push_back(sample);
  }
  void forget(std::uint32_t sample) {
    const auto found = records_.find(sample);
    if (found == records_.end()) return;
    free_ += found->second.size();
    records_.erase(found);
  }

 private:
  void drop_a_copy() {
    forget(copies_.back());
    copies_.pop_back();
  }

  std::uint64_t free_;
  std::unordered_map<std::uint32_t, std::vector<std::byte>> records_;
  std::vector<std::uint32_t> copies_;  ///< also some that were forgotten
};

/// The place a record came from.
enum class Tier : std::uint8_t { memory, disk, origin, lost, decoded };

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
  /// The record's decoded form is kept: it is not read again.
  void forget(std::uint32_t sample) { memory_.forget(sample); }
  [[nodiscard]] std::uint64_t damaged() const noexcept { return store_ ? store_->damaged() : 0; }

 private:
  const input::Source& origin_;
  Memory memory_;
  std::unique_ptr<disk::Store> store_;  ///< null: this rank has no disk
};

}  // namespace syncopate::cache
