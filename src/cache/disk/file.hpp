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
  /// `flags` are open(2)'s. Throws SystemFailure that names the file.
  File(const std::string& name, int flags);
  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
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
  int descriptor_;
};

/// Opens `folder`, which is made where it is missing, and locks it. Throws SystemFailure that names it.
[[nodiscard]] File own_folder(const std::string& folder);

/// Puts `bytes` in the place of the file `name`: written beside it, then renamed, so that whoever opens it sees the old
/// file or the new one. Not flushed to the disk. Throws SystemFailure.
[[nodiscard]] File replace_file(const std::string& name, base::ConstBytes bytes);

}  // namespace syncopate::cache::disk
