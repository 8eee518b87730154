// The heap: pages are allocated, freed and zero again, and a peer reaches them and nothing else.
#include "transport/shm/heap.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "syncopate/error.hpp"

namespace syncopate::transport::shm {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

bool is_zero(const std::byte* bytes, std::size_t count) {
  return std::all_of(bytes, bytes + count, [](std::byte byte) { return byte == std::byte{0}; });
}

TEST(Heap, GivesMemoryThatIsZeroAlsoTheSecondTime) {
  const auto heap = Heap::of(kMiB);
  for (int round = 0; round < 3; ++round) {
    const auto memory = heap->allocate(kMiB);
    ASSERT_TRUE(memory);
    EXPECT_TRUE(is_zero(memory.get(), kMiB));
    std::memset(memory.get(), 0x5a, kMiB);
    EXPECT_FALSE(heap->allocate(1)) << "it is full";
  }
}

TEST(Heap, JoinsWhatIsGivenBackInAnyOrder) {
  const auto heap = Heap::of(kMiB);
  for (const std::vector<int>& order : {std::vector{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}, {2, 0, 3, 1}}) {
    std::vector<std::shared_ptr<std::byte[]>> quarters;
    for (int i = 0; i < 4; ++i) quarters.push_back(heap->allocate(kMiB / 4));
    for (const auto& quarter : quarters) ASSERT_TRUE(quarter);
    for (const int i : order) quarters[static_cast<std::size_t>(i)].reset();
    ASSERT_TRUE(heap->allocate(kMiB)) << "a single run again";
  }
}

TEST(Heap, OutlivesWhoeverAllocated) {
  auto heap = Heap::of(kMiB);
  const auto memory = heap->allocate(100);
  heap.reset();
  std::memset(memory.get(), 1, 100);
}

TEST(Heap, HasNothingForMoreThanItHoldsOrWhereItHoldsNothing) {
  EXPECT_FALSE(Heap::of(kMiB)->allocate(kMiB + 1));
  EXPECT_FALSE(Heap::of(kMiB)->allocate(~std::size_t{0}));
  EXPECT_FALSE(Heap::of(0)->allocate(1));
}

TEST(Heap, KnowsWhatLiesInIt) {
  const auto heap = Heap::of(kMiB);
  const auto memory = heap->allocate(kMiB);
  EXPECT_EQ(heap->place_of({memory.get() + 77, 100}), 77U);
  EXPECT_EQ(heap->place_of({memory.get(), kMiB}), 0U);
  EXPECT_FALSE(heap->place_of({memory.get() + 1, kMiB})) << "its end lies beyond";
  EXPECT_FALSE(heap->place_of({memory.get(), 0}));
  const std::byte elsewhere{};
  EXPECT_FALSE(heap->place_of({&elsewhere, 1}));
}

/// As its neighbours map it.
PeerHeap peer_of(Heap& heap) {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  const socket::Descriptor one(ends[0]), other(ends[1]);
  EXPECT_TRUE(heap.pass(one));
  return PeerHeap::adopt(*receive_descriptor(other));
}

TEST(Heap, ClosesItsDescriptorWhenEveryNeighbourHasTheMemory) {
  const auto heap = Heap::of(kMiB);
  const auto highest = [] { return socket::Descriptor(::dup(STDIN_FILENO)).number(); };
  const int before = highest();
  heap->close_after(2);
  const PeerHeap one = peer_of(*heap);
  EXPECT_EQ(highest(), before) << "a second neighbour needs it";
  const PeerHeap other = peer_of(*heap);
  EXPECT_LT(highest(), before);
  EXPECT_TRUE(heap->allocate(kMiB));
}

TEST(PeerHeap, OfAnySizeIsSeenAndStaysWhereItWasSeen) {
  constexpr std::uint64_t kBytes = 5 * kFirstMapping / 2;
  const auto heap = Heap::of(kBytes);
  const auto memory = heap->allocate(kBytes);
  PeerHeap peer = peer_of(*heap);
  std::vector<std::pair<std::uint64_t, base::Bytes>> all;
  for (const std::uint64_t place : {std::uint64_t{0}, kFirstMapping - 50, kFirstMapping, 2 * kFirstMapping - 100,
                                    2 * kFirstMapping, kBytes - 100}) {
    std::memset(memory.get() + place, 3, 100);
    const base::Bytes seen = peer.at(place, 100);
    EXPECT_EQ(std::ranges::count(seen, std::byte{3}), 100) << place;
    seen[99] = std::byte{4};
    EXPECT_EQ(memory[place + 99], std::byte{4}) << place;
    all.emplace_back(place, seen);
  }
  for (const auto& [place, seen] : all) {
    memory[place] = std::byte{5};
    EXPECT_EQ(seen[0], std::byte{5}) << place;
  }
  EXPECT_EQ(peer.at(0, kBytes).size(), kBytes);
}

// Mapped whole, they would need 16 times the addresses that a process has.
TEST(PeerHeap, TakesAddressesAsFarAsItsOwnerUsesItOnly) {
  const socket::Descriptor memory = make_sealed(std::uint64_t{8} << 40);
  std::vector<PeerHeap> peers;
  for (int i = 0; i < 256; ++i) {
    peers.push_back(PeerHeap::adopt(memory));
    EXPECT_EQ(peers.back().at(3 * kFirstMapping, 10).size(), 10U);
  }
}

TEST(PeerHeap, ShowsWhatItsOwnerWritesAndNoMore) {
  const auto heap = Heap::of(kMiB);
  PeerHeap peer = peer_of(*heap);
  const auto memory = heap->allocate(kMiB);
  memory[5] = std::byte{9};
  EXPECT_EQ(peer.at(5, 1)[0], std::byte{9});
  peer.at(6, 1)[0] = std::byte{8};
  EXPECT_EQ(memory[6], std::byte{8});
  EXPECT_EQ(peer.at(kMiB - 10, 10).size(), 10U);
  using Claim = std::pair<std::uint64_t, std::uint64_t>;
  for (const auto& [place, bytes] : {Claim{kMiB - 10, 11}, Claim{kMiB + 1, 0}, Claim{0, kMiB + 1}, Claim{~0ULL, 1},
                                     Claim{1, ~0ULL}, Claim{~0ULL, ~0ULL}})
    EXPECT_THROW(std::ignore = peer.at(place, bytes), Corrupt) << place << ' ' << bytes;
}

TEST(PeerHeap, ThatIsNotSealedIsRefused) {
  socket::Descriptor pipe_ends[2];
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  pipe_ends[0] = socket::Descriptor(ends[0]);
  pipe_ends[1] = socket::Descriptor(ends[1]);
  EXPECT_THROW(std::ignore = PeerHeap::adopt(pipe_ends[0]), Corrupt);
  EXPECT_THROW(std::ignore = PeerHeap::adopt({}), Corrupt);
}

}  // namespace
}  // namespace syncopate::transport::shm
