// The index of a disk cache: which records of which set lie where in the records' file, each row with its own hash.
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

/// Where a record lies, and what it hashes to.
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
  bool is_of_set = false;   ///< its header is whole and names this version of the set; else there are no rows
  std::vector<Row> rows;    ///< in the order of their offsets, which do not overlap; each sample once
  std::size_t damaged = 0;  ///< rows that cannot be right
};
/// Reads an index of `set`, whose records' file has `data_bytes` bytes. Believes no row that its hash does not confirm,
/// that names no record of the set or another length than the record's, or that lies beyond the file.
[[nodiscard]] ParsedIndex parse_index(base::ConstBytes bytes, const input::Source& set, std::uint64_t data_bytes);

}  // namespace syncopate::cache::disk
