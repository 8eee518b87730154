// The agreement as two all-gathers: numbers, which must fit each other, then one bit for each record on a disk.
#include "cache/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "syncopate/collective.hpp"
#include "syncopate/error.hpp"

namespace syncopate::cache {
namespace {

constexpr std::size_t kNumbers = 5, kBits = 64;

/// Gathers `mine` of all ranks; it has the same length on every rank.
std::vector<std::uint64_t> gathered(Group& group, const std::vector<std::uint64_t>& mine, const char* name) {
  std::vector<std::uint64_t> all(mine.size() * static_cast<std::size_t>(group.size()));
  std::ranges::copy(mine, all.begin() + static_cast<std::ptrdiff_t>(mine.size()) * group.rank());
  allgather(group, Buffer(all.data(), all.size(), DType::i64), {.name = name});
  return all;
}

void compare(const Statement& first, const Statement& other, Where where) {
  const auto refuse = [&](const char* what, std::uint64_t here, std::uint64_t there) {
    if (here == there) return;
    throw Mismatch(fmt::format("rank {} caches a different data set from rank 0: {} {:#x} there, {:#x} on rank 0",
                               where.peer, what, there, here),
                   where);
  };
  refuse("records", first.records, other.records);
  refuse("version", first.version, other.version);
  refuse("seed", first.seed, other.seed);
}

}  // namespace

std::vector<Statement> agree(Group& group, const Statement& mine) {
  const auto numbers = gathered(group, {mine.version, mine.records, mine.seed, mine.room.disk, mine.room.memory},
                                "cache: sets and budgets");
  std::vector<Statement> all;
  for (std::size_t at = 0; at < numbers.size(); at += kNumbers)
    all.push_back({numbers[at], numbers[at + 1], numbers[at + 2], {numbers[at + 3], numbers[at + 4]}, {}});
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    compare(all[0], all[rank],
            {.rank = group.rank(), .peer = static_cast<int>(rank), .operation = "forming a cache", .tensor = ""});

  std::vector<std::uint64_t> held((mine.records + kBits - 1) / kBits);
  for (const std::uint32_t sample : mine.on_disk) held[sample / kBits] |= std::uint64_t{1} << sample % kBits;
  const auto bits = gathered(group, held, "cache: records on disks");
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    for (std::uint32_t sample = 0; sample < mine.records; ++sample)
      if ((bits[rank * held.size() + sample / kBits] >> sample % kBits & 1) != 0) all[rank].on_disk.push_back(sample);
  return all;
}

}  // namespace syncopate::cache
