// Store: records in one rank's folder. It survives restarts and returns only records whose hash is right.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "cache/disk/file.hpp"
#include "syncopate/input.hpp"
#include "syncopate/log.hpp"

namespace syncopate::cache::disk {

struct Place {
  std::string folder;
  std::uint64_t budget = 0;  ///< bytes of records and rows
};

/// The part of the budget that a record uses.
[[nodiscard]] constexpr std::uint64_t cost_of(std::uint64_t bytes) noexcept { return bytes + kRowBytes; }

/// Two files: `records`, one record after another, and `index`. A record's bytes are written before its row; neither is
/// flushed. After a crash of the machine a row may be lost or wrong, which its hash or the record's hash detects. So
/// the store may lose records but never returns wrong ones. Not thread-safe.
class Store final {
 public:
  /// Opens the folder and reads the index of `set`, which must outlive the store. Ignores an index of another set or
  /// version. Throws SystemFailure if the folder cannot be used.
  Store(Place place, const input::Source& set, Log log);

  /// The records that it holds, in no order.
  [[nodiscard]] std::vector<std::uint32_t> samples() const;
  /// Drops the records that are not `wanted`; new ones may use their space. Called once, before the functions below.
  void retain(const std::function<bool(std::uint32_t)>& wanted);

  /// False if the record is missing or damaged; it can then be kept again.
  [[nodiscard]] bool read(std::uint32_t sample, base::Bytes into);
  /// Keeps a record and replaces an earlier one of that sample. False if there is no room or the disk refuses; after a
  /// refusal the store writes no more and logs it once.
  bool keep(std::uint32_t sample, base::ConstBytes bytes);
  /// Records that `read` has found damaged.
  [[nodiscard]] std::uint64_t damaged() const noexcept { return damaged_; }

 private:
  struct Entry {
    Row row;
    std::size_t slot = 0;   ///< index of its row
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
  std::vector<Row> found_;  ///< valid until `retain`
  std::optional<File> index_;
  std::unordered_map<std::uint32_t, Entry> entries_;
  FreeSpace free_;
  std::uint64_t damaged_ = 0;
  bool refuses_ = false;
};

}  // namespace syncopate::cache::disk
