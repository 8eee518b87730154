// Store: records in one rank's folder, found again after a restart, and never given out unless their hash is right.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "cache/disk/file.hpp"
#include "cache/disk/free_space.hpp"
#include "syncopate/input.hpp"
#include "syncopate/log.hpp"

namespace syncopate::cache::disk {

struct Place {
  std::string folder;
  std::uint64_t budget = 0;  ///< bytes of records and rows
};

/// What a record takes of the budget.
[[nodiscard]] constexpr std::uint64_t cost_of(std::uint64_t bytes) noexcept { return bytes + kRowBytes; }

/// Two files: `records`, one record behind the other, and `index`. A record's bytes are written before its row, neither
/// is flushed: after a crash of the machine a row may be lost or lie, and its hash, or the record's, shows it. So the
/// store may forget and does not lie. Not thread-safe.
class Store final {
 public:
  /// Opens the folder and reads the index of `set`, which outlives the store; another set's or version's is void.
  /// Throws SystemFailure if the folder cannot be used.
  Store(Place place, const input::Source& set, Log log);

  /// What it holds, in no order.
  [[nodiscard]] std::vector<std::uint32_t> samples() const;
  /// Forgets the records that are not `wanted`, and from now on takes others in their place. Called once, before the
  /// functions below.
  void retain(const std::function<bool(std::uint32_t)>& wanted);

  /// False if the record is not here, or not any more what was written; it can then be kept again.
  [[nodiscard]] bool read(std::uint32_t sample, base::Bytes into);
  /// Keeps a record, in the place of the one with that number. False if there is no room, or the disk refuses: it is
  /// then not written to any more, which is said once.
  bool keep(std::uint32_t sample, base::ConstBytes bytes);
  /// Records that `read` has found damaged.
  [[nodiscard]] std::uint64_t damaged() const noexcept { return damaged_; }

 private:
  struct Entry {
    Row row;
    std::size_t slot = 0;   ///< number of its row in the index
    bool is_whole = false;  ///< false: damaged, or not written
  };

  [[nodiscard]] std::string file(const char* name) const { return place_.folder + '/' + name; }
  [[nodiscard]] Entry* entry_for(std::uint32_t sample, std::size_t length);
  void refuse(const char* why);
  [[nodiscard]] int write(const Entry& entry, base::ConstBytes bytes);

  const Place place_;
  const input::Source& set_;
  const Log log_;
  const File folder_;  ///< holds the lock
  File records_;
  std::vector<Row> found_;  ///< until `retain`
  std::optional<File> index_;
  std::unordered_map<std::uint32_t, Entry> entries_;
  FreeSpace free_;
  std::uint64_t damaged_ = 0;
  bool refuses_ = false;
};

}  // namespace syncopate::cache::disk
