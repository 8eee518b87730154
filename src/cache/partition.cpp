// The partition's rule: disk before memory, first user before the others. A record without room stays without a holder.
#include "cache/partition.hpp"

#include "cache/disk/store.hpp"

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

}  // namespace syncopate::cache
