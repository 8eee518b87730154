// The index of a disk cache: rows of which some have a hash that fits, and a header that does.
#include <algorithm>

#include "cache/disk/index.hpp"
#include "fuzz/target.hpp"

namespace syncopate::fuzz::target {
namespace {

/// 256 records; record r has r bytes.
class Lengths final : public input::Source {
 public:
  [[nodiscard]] std::size_t records() const noexcept override { return 256; }
  [[nodiscard]] std::size_t bytes(std::size_t record) const override {
    hold(record < records(), "no record is asked for that there is not");
    return record;
  }
  [[nodiscard]] std::int64_t label(std::size_t) const override { return 0; }
  [[nodiscard]] std::string name(std::size_t) const override { return ""; }
  [[nodiscard]] std::uint64_t version() const noexcept override { return 1; }
  void read(std::size_t, std::span<std::byte>) const override {}
};

}  // namespace

void cache_index(Input input) {
  const Lengths set;
  Fields fields(input);
  const auto data_bytes = fields.take<std::uint16_t>();
  std::vector<std::byte> bytes;
  if (fields.take<std::uint8_t>() % 4 != 0) bytes = cache::disk::index_of(set, {});
  while (!fields.empty()) {
    std::vector<std::byte> row(cache::disk::kRowBytes);
    const auto choice = fields.take<std::uint8_t>();
    const Input taken = fields.take_bytes(choice % 8 == 0 ? choice : row.size() - 8);
    row.resize(std::max(row.size(), taken.size()));
    std::ranges::copy(taken, row.begin());
    if (choice % 8 > 1) base::put(base::Bytes(row), 4, static_cast<std::uint32_t>(row[0]));
    if (choice % 8 > 2) base::put(base::Bytes(row), 8, static_cast<std::uint64_t>(base::get<std::uint16_t>(row, 8)));
    if (choice % 2 == 1) base::put(base::Bytes(row), 24, cache::disk::hash_of(base::ConstBytes(row).first(24)));
    bytes.insert(bytes.end(), row.begin(), row.end());
  }
  const auto index = cache::disk::parse_index(bytes, set, data_bytes);
  hold(index.is_of_set || index.rows.empty(), "a foreign index has no rows");
  std::uint64_t end = 0;
  for (const auto& row : index.rows) {
    hold(row.sample < set.records() && row.length == row.sample, "a row names a record and its length");
    hold(row.offset >= end, "rows do not overlap");
    end = row.offset + row.length;
    hold(end <= data_bytes, "a row lies in the file");
  }
  const auto again = cache::disk::parse_index(cache::disk::index_of(set, index.rows), set, data_bytes);
  hold(again.rows == index.rows && again.damaged == 0, "what is written is read alike");
}

}  // namespace syncopate::fuzz::target
