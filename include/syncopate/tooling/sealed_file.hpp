// Sealed files: a header and numbers with a hash, so that a damaged or incomplete file is refused.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

/// Throws Misuse (a folder, a device) or SystemFailure if `file` cannot be written, so that a program fails before it
/// computes the contents.
void require_writable(const std::string& file);

/// Magic (8 bytes), u64 header bytes, header, payload, XXH3-64 of all preceding bytes; little-endian. First removes
/// drafts of `file` that killed processes have left. Writes a draft next to `file` (FILE.<random>.writing), flushes it
/// to the disk, then renames it: a reader sees the complete old or new file, even with several writers. Throws
/// SystemFailure; then the old file remains and the draft is removed.
void write_sealed(const std::string& file, std::string_view magic, const std::string& header,
                  std::span<const std::span<const std::byte>> payload);

struct Sealed {
  std::vector<std::uint8_t> bytes;  ///< the whole file
  std::string_view header;          ///< within it
  std::span<const std::uint8_t> payload;
};

/// The magic that a sealed file must begin with, and the name of this kind of file in messages.
struct SealedKind {
  std::string_view magic, what;
};
/// Throws Corrupt that names `file`: it does not begin with the magic, is cut short, or changed.
[[nodiscard]] Sealed parse_sealed(std::vector<std::uint8_t> bytes, const std::string& file, const SealedKind& kind);
/// Reads and parses `file`. Also throws SystemFailure if it cannot be read, or is a folder, a FIFO or a device.
[[nodiscard]] Sealed read_sealed(const std::string& file, std::string_view magic, std::string_view what);

}  // namespace syncopate
