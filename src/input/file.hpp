// File: one open file that is read at offsets, by several threads at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace syncopate::input {

class File final {
 public:
  explicit File(std::string path);  ///< throws SystemFailure that names it
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&&) = delete;

  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }  ///< when it was opened
  [[nodiscard]] std::int64_t changed_ns() const noexcept { return changed_ns_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Fills `into` from `offset`. Throws SystemFailure; Corrupt if the file ends earlier.
  void read(std::uint64_t offset, std::span<std::byte> into) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;
  std::int64_t changed_ns_ = 0;
};

}  // namespace syncopate::input
