// Blame: how a rank reports the rank that failed first to `syncopate run`, which processes' ends do not show.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace syncopate {

/// A descriptor that a rank inherits from `syncopate run`, as SYNCOPATE_BLAME_FD names it: "NUMBER:INODE". The inode
/// distinguishes it from another file that has the number later, or in a process that the rank starts.
struct BlameDescriptor {
  int number = -1;
  std::uint64_t inode = 0;

  /// Describes an open descriptor.
  [[nodiscard]] static BlameDescriptor of(int number) noexcept;
  /// Throws Misuse.
  [[nodiscard]] static BlameDescriptor parse(std::string_view text);
  [[nodiscard]] std::string text() const;
  /// Writes one line that names the rank. Does nothing if the descriptor is closed or is another file, or if the line
  /// cannot be written at once.
  void report(int rank) const noexcept;
};

/// The rank that such a line names; nullopt for any other line.
[[nodiscard]] std::optional<int> blamed_in(std::string_view line);

}  // namespace syncopate
