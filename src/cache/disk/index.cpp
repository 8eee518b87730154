// Writes and reads the index of a disk cache; everything read from the disk is checked before it is used.
#include "cache/disk/index.hpp"

#include <xxhash.h>

#include <algorithm>
#include <unordered_set>

namespace syncopate::cache::disk {
namespace {

constexpr std::uint64_t kMagic = 0x48434143434e5953;  ///< "SYNCCACH"
constexpr std::uint64_t kFormat = 1;

bool is_header_of(base::ConstBytes bytes, const input::Source& set) {
  std::byte expected[kHeaderBytes];
  write_header(expected, set);
  return bytes.size() >= kHeaderBytes && std::ranges::equal(bytes.first(kHeaderBytes), expected);
}

Row row_of(base::ConstBytes bytes) {
  return {base::get<std::uint32_t>(bytes, 0), base::get<std::uint32_t>(bytes, 4), base::get<std::uint64_t>(bytes, 8),
          base::get<std::uint64_t>(bytes, 16)};
}

bool is_right(base::ConstBytes bytes, const input::Source& set, std::uint64_t data_bytes) {
  const Row row = row_of(bytes);
  return base::get<std::uint64_t>(bytes, 24) == hash_of(bytes.first(24)) && row.sample < set.records() &&
         row.length == set.bytes(row.sample) && row.length <= data_bytes && row.offset <= data_bytes - row.length;
}

/// Keeps the row with the least offset among rows that overlap or have the same sample.
void drop_overlaps(ParsedIndex& index) {
  std::ranges::sort(index.rows, {}, [](const Row& row) { return std::pair(row.offset, row.length); });
  std::unordered_set<std::uint32_t> seen;
  std::uint64_t end = 0;
  index.damaged += std::erase_if(index.rows, [&](const Row& row) {
    if (row.offset < end || !seen.insert(row.sample).second) return true;
    end = row.offset + row.length;
    return false;
  });
}

}  // namespace

std::uint64_t hash_of(base::ConstBytes bytes) noexcept { return XXH3_64bits(bytes.data(), bytes.size()); }

void write_header(base::Bytes into, const input::Source& set) {
  base::put(into, 0, kMagic);
  base::put(into, 8, kFormat);
  base::put(into, 16, set.version());
  base::put(into, 24, static_cast<std::uint64_t>(set.records()));
  base::put(into, 32, hash_of(into.first(32)));
}

void write_row(base::Bytes into, const Row& row) {
  base::put(into, 0, row.sample);
  base::put(into, 4, row.length);
  base::put(into, 8, row.offset);
  base::put(into, 16, row.hash);
  base::put(into, 24, hash_of(into.first(24)));
}

std::vector<std::byte> index_of(const input::Source& set, const std::vector<Row>& rows) {
  std::vector<std::byte> bytes(kHeaderBytes + rows.size() * kRowBytes);
  write_header(bytes, set);
  for (std::size_t i = 0; i < rows.size(); ++i)
    write_row(base::Bytes(bytes).subspan(kHeaderBytes + i * kRowBytes, kRowBytes), rows[i]);
  return bytes;
}

ParsedIndex parse_index(base::ConstBytes bytes, const input::Source& set, std::uint64_t data_bytes) {
  if (!is_header_of(bytes, set)) return {};
  ParsedIndex index{.is_of_set = true, .rows = {}, .damaged = bytes.size() % kRowBytes != kHeaderBytes % kRowBytes};
  for (bytes = bytes.subspan(kHeaderBytes); bytes.size() >= kRowBytes; bytes = bytes.subspan(kRowBytes)) {
    if (is_right(bytes.first(kRowBytes), set, data_bytes))
      index.rows.push_back(row_of(bytes));
    else
      ++index.damaged;
  }
  drop_overlaps(index);
  return index;
}

}  // namespace syncopate::cache::disk
