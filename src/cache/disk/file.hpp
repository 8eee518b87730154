// File: bytes at places of a file, read and written whole or not at all, and a folder that one process owns.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/bytes.hpp"

namespace syncopate::cache::disk {

/// An open descriptor.
class File final {
 public:
  /// `flags` are open(2)'s. A symbolic link in the file's place is not followed. Throws SystemFailure that names the
  /// file, also where it is no regular file.
  File(const File& folder, const std::string& name, int flags);
  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}
  File& operator=(File&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(path_, other.path_);
    return *this;
  }
  ~File();

  [[nodiscard]] std::uint64_t size() const noexcept;  ///< 0 if it cannot be told
  /// False where the file ends before, or cannot be read.
  [[nodiscard]] bool read_at(std::uint64_t offset, base::Bytes into) const noexcept;
  /// 0, or the error's number; what was written before it is then unspecified.
  [[nodiscard]] int write_at(std::uint64_t offset, base::ConstBytes bytes) noexcept;
  void truncate(std::uint64_t size) noexcept;  ///< as far as the system does it
  /// False where another process, or another part of this one, has locked the same file or folder.
  [[nodiscard]] bool lock() noexcept;

 private:
  friend File own_folder(const std::string& folder);
  friend File replace_file(const File& folder, const std::string& name, base::ConstBytes bytes);
  File(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}

  int descriptor_;
  std::string path_;  ///< for messages
};

/// Opens `folder`, which is made where it is missing, and locks it. Its last component must not be a symbolic link:
/// in a folder that every user can write to, anybody may have made it. Throws SystemFailure that names it.
[[nodiscard]] File own_folder(const std::string& folder);

/// Puts `bytes` in the place of the folder's file `name`: written beside it, then renamed, so that whoever opens it
/// sees the old file or the new one. Not flushed to the disk. Throws SystemFailure.
[[nodiscard]] File replace_file(const File& folder, const std::string& name, base::ConstBytes bytes);

}  // namespace syncopate::cache::disk
