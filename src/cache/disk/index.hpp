// The index of a disk cache: the set, and the position of each record in the records' file. Each row has its own hash.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.hpp"
#include "syncopate/input.hpp"

namespace syncopate::cache::disk {

// Header, 40 bytes, little-endian: magic "SYNCCACH", u64 format, u64 version of the set, u64 its records, XXH3-64 of
// the 32 bytes before. Then rows of 32 bytes: u32 sample, u32 length, u64 offset in the records' file, XXH3-64 of the
// record, XXH3-64 of the 24 bytes before.
inline constexpr std::size_t kHeaderBytes = 40, kRowBytes = 32;

/// The position and the hash of a record.
struct Row {
  std::uint32_t sample = 0;
  std::uint32_t length = 0;
  std::uint64_t offset = 0;
  std::uint64_t hash = 0;
  friend bool operator==(const Row&, const Row&) = default;
};

[[nodiscard]] std::uint64_t hash_of(base::ConstBytes bytes) noexcept;

void write_header(base::Bytes into, const input::Source& set);
void write_row(base::Bytes into, const Row& row);
/// A whole index.
[[nodiscard]] std::vector<std::byte> index_of(const input::Source& set, const std::vector<Row>& rows);

struct ParsedIndex {
  bool is_of_set = false;   ///< its header is valid and names this version of the set; otherwise there are no rows
  std::vector<Row> rows;    ///< sorted by offset, without overlaps; each sample once
  std::size_t damaged = 0;  ///< invalid rows
};
/// Reads an index of `set`, whose records' file has `data_bytes` bytes. Drops a row whose hash is wrong, whose sample
/// is not in the set, whose length differs from the record's, or whose range exceeds the file.
[[nodiscard]] ParsedIndex parse_index(base::ConstBytes bytes, const input::Source& set, std::uint64_t data_bytes);

}  // namespace syncopate::cache::disk
