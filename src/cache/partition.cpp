// The partition's rule: disk before memory, first user before the others. A record without room stays without a holder.
#include "cache/partition.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cache/disk/store.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/error.hpp"

namespace syncopate::cache {

namespace {

constexpr std::int32_t kOpen = -2;  ///< not yet assigned

/// The rule by which LocalTiers fills them.
bool take(Room& room, std::uint64_t bytes) {
  if (const std::uint64_t cost = disk::cost_of(bytes); cost <= room.disk) {
    room.disk -= cost;
    return true;
  }
  if (bytes > room.memory) return false;
  room.memory -= bytes;
  return true;
}

}  // namespace

Partition::Partition(std::size_t samples, std::vector<Room> rooms)
    : holders_(samples, kOpen), rooms_(std::move(rooms)) {}

bool Partition::found(std::uint32_t sample, std::uint64_t bytes, int rank) {
  std::uint64_t& disk = rooms_[static_cast<std::size_t>(rank)].disk;
  if (holders_[sample] != kOpen || disk::cost_of(bytes) > disk) return false;
  disk -= disk::cost_of(bytes);
  holders_[sample] = rank;
  return true;
}

int Partition::holder_of(std::uint32_t sample, std::uint64_t bytes, int taker) {
  std::int32_t& holder = holders_[sample];
  if (holder != kOpen) return holder;
  const auto most = std::ranges::max_element(rooms_, {}, [](const Room& room) { return room.disk + room.memory; });
  if (take(rooms_[static_cast<std::size_t>(taker)], bytes))
    holder = taker;
  else
    holder = take(*most, bytes) ? static_cast<std::int32_t>(most - rooms_.begin()) : kNobody;
  return holder;
}

namespace {

constexpr std::size_t kNumbers = 6, kBits = 64;

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
  const auto numbers =
      gathered(group, {mine.version, mine.records, mine.seed, mine.room.disk, mine.room.memory, mine.decoded},
               "cache: sets and budgets");
  std::vector<Statement> all;
  for (std::size_t at = 0; at < numbers.size(); at += kNumbers)
    all.push_back(
        {numbers[at], numbers[at + 1], numbers[at + 2], {numbers[at + 3], numbers[at + 4]}, numbers[at + 5], {}});
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
