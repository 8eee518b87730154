// File: reads and writes complete ranges of a file. A folder belongs to one process.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
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

/// An open descriptor.
class File final {
 public:
  /// `flags` are open(2)'s. Does not follow a symbolic link. Throws SystemFailure that names the file, also if it is
  /// not a regular file.
  File(const File& folder, const std::string& name, int flags);
  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}
  File& operator=(File&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(path_, other.path_);
    return *this;
  }
  ~File();

  [[nodiscard]] std::uint64_t size() const noexcept;  ///< 0 if it cannot be determined
  /// False if the file ends earlier or cannot be read.
  [[nodiscard]] bool read_at(std::uint64_t offset, base::Bytes into) const noexcept;
  /// Returns 0 or the error number; after an error the contents of the range are unspecified.
  [[nodiscard]] int write_at(std::uint64_t offset, base::ConstBytes bytes) noexcept;
  void truncate(std::uint64_t size) noexcept;  ///< ignores errors
  /// False if another process, or another part of this one, has locked the same file or folder.
  [[nodiscard]] bool lock() noexcept;

 private:
  friend File own_folder(const std::string& folder);
  friend File replace_file(const File& folder, const std::string& name, base::ConstBytes bytes);
  File(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}

  int descriptor_;
  std::string path_;  ///< for messages
};

/// Opens `folder`, creates it if it is missing, and locks it. Its last component must not be a symbolic link, because
/// in a folder that every user can write to any user may have created it. Throws SystemFailure that names it.
[[nodiscard]] File own_folder(const std::string& folder);

/// Replaces the folder's file `name` by `bytes`: writes a draft next to it and renames the draft, so that a reader sees
/// either the old or the new file. Does not flush to the disk. Throws SystemFailure.
[[nodiscard]] File replace_file(const File& folder, const std::string& name, base::ConstBytes bytes);

}  // namespace syncopate::cache::disk
