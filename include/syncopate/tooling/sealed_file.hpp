// Sealed files: a header and numbers, hashed, in a file that is either whole or refused.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

/// Throws Misuse (a folder, a device) or SystemFailure where `file` could not be written, before hours are spent on
/// what it shall hold.
void require_writable(const std::string& file);

/// Magic (8 bytes), u64 header bytes, header, payload, XXH3-64 of all before; little-endian. Writes beside `file`
/// (FILE.<random>.writing), flushes to the disk, then renames: a reader sees the old file or the new one, whole,
/// whoever else writes it. Throws SystemFailure; the old file is then still there, and nothing beside it. Drafts of
/// `file` that killed processes have left are removed first.
void write_sealed(const std::string& file, std::string_view magic, const std::string& header,
                  std::span<const std::span<const std::byte>> payload);

struct Sealed {
  std::vector<std::uint8_t> bytes;  ///< the whole file
  std::string_view header;          ///< within it
  std::span<const std::uint8_t> payload;
};

/// What a sealed file must be: it begins with the magic, which is that of `what`.
struct SealedKind {
  std::string_view magic, what;
};
/// Throws Corrupt that names `file`: it does not begin with the magic, is cut short, or changed.
[[nodiscard]] Sealed parse_sealed(std::vector<std::uint8_t> bytes, const std::string& file, const SealedKind& kind);
/// The same of a file; throws SystemFailure if it cannot be read, or is a folder, a FIFO or a device.
[[nodiscard]] Sealed read_sealed(const std::string& file, std::string_view magic, std::string_view what);

}  // namespace syncopate
