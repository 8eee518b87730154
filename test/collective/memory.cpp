// The group's memory: what it is on every transport, and collectives on vectors that lie there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "ranks.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

TEST(GroupMemory, IsZeroOnPagesOfItsOwnAndOutlivesTheGroup) {
  constexpr std::size_t kBytes = 100'001;
  test::on_every_transport(2, [](Group& group) {
    const auto branch = group.split(group.rank(), 0);  // a group of one rank
    for (Group* each : {&group, branch.get()}) {
      const auto memory = each->allocate(kBytes), other = each->allocate(1);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.get()) % 4096, 0U);
      EXPECT_NE(memory.get(), other.get());
      EXPECT_EQ(std::count(memory.get(), memory.get() + kBytes, std::byte{0}), std::ptrdiff_t{kBytes});
      std::memset(memory.get(), 1, kBytes);
    }
  });
  std::shared_ptr<std::byte[]> kept;
  {
    const auto groups = test::joined(2, {.transport = TransportChoice::shm});
    kept = groups[0]->allocate(kBytes);
  }
  std::memset(kept.get(), 1, kBytes);
}

TEST(GroupMemory, ServesAnyPartOfIt) {
  test::on_every_transport(3, [](Group& group) {
    const auto memory = group.allocate<float>(400'000);
    for (const std::size_t begin : {0UL, 1UL, 17UL, 4096UL})
      for (const std::size_t count : {5UL, 3000UL, 70'001UL, 300'000UL}) {
        const auto values = std::span(memory.get(), 400'000).subspan(begin, count);
        std::ranges::fill(values, static_cast<float>(group.rank() + 1));
        allreduce(group, values);
        EXPECT_EQ(std::ranges::count(values, 6.0F), static_cast<std::ptrdiff_t>(count)) << begin << ' ' << count;
      }
    EXPECT_EQ(std::span(memory.get(), 400'000)[399'999], 0) << "nothing beyond it is touched";
  });
}

TEST(GroupMemory, OfAnotherGroupIsMemoryAsAnyOther) {
  test::on_every_transport(4, [](Group& group) {
    const auto memory = group.allocate<float>(200'000);
    const auto half = group.split(group.rank() % 2, 0);
    const auto values = std::span(memory.get(), 200'000);
    std::ranges::fill(values, 1.0F);
    allreduce(*half, values);
    EXPECT_EQ(std::ranges::count(values, 2.0F), 200'000);
    allreduce(group, values);
    EXPECT_EQ(std::ranges::count(values, 8.0F), 200'000);
  });
}

TEST(GroupMemory, ServesHierarchiesOfHosts) {
  const auto failures =
      test::outcomes_over("shm", 5,
                          [](Group& group) {
                            constexpr std::size_t kCount = 300'000;
                            const auto memory = group.allocate<float>(kCount);
                            const auto values = std::span(memory.get(), kCount);
                            for (const char* inner : {"ring", "halving_doubling", "mst"}) {
                              std::ranges::fill(values, 1.0F);
                              allreduce(group, values, {.algorithm = "hierarchical", .tuning = {.inner = inner}});
                              EXPECT_EQ(std::ranges::count(values, 5.0F), std::ptrdiff_t{kCount}) << inner;
                            }
                          },
                          {.timeout = 20s, .ranks_per_host = 2});
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

TEST(GroupMemory, ServesGroupsOfWhichNotAllShareIt) {
  constexpr int kRanks = 4;
  const auto groups =
      test::joined(kRanks, {.timeout = 20s, .transport = TransportChoice::automatic}, [](GroupOptions& mine) {
        if (mine.rank == kRanks - 1) mine.transport = TransportChoice::tcp;
      });
  constexpr std::size_t kCount = 300'011;
  test::on_ranks(kRanks, [&](int rank) {
    Group& group = *groups[static_cast<std::size_t>(rank)];
    EXPECT_EQ(group.transport(), "shm+tcp") << "costs depend on it, so it is equal on all ranks";
    const auto memory = group.allocate<float>(kCount);
    const auto values = std::span(memory.get(), kCount);
    std::ranges::fill(values, 1.0F);
    allreduce(group, values);
    EXPECT_EQ(std::ranges::count(values, 4.0F), std::ptrdiff_t{kCount});
  });
}

TEST(GroupMemory, ServesMessagesBothWays) {
  test::on_every_transport(2, [](Group& group) {
    constexpr std::size_t kCount = 500'000;
    const auto out = group.allocate<float>(kCount), in = group.allocate<float>(kCount);
    std::ranges::fill(std::span(out.get(), kCount), static_cast<float>(group.rank() + 1));
    const int other = 1 - group.rank();
    exchange(group, {other, std::span(out.get(), kCount)}, {other, std::span(in.get(), kCount)});
    EXPECT_EQ(std::ranges::count(std::span(in.get(), kCount), static_cast<float>(other + 1)), std::ptrdiff_t{kCount});
    EXPECT_EQ(std::ranges::count(std::span(out.get(), kCount), static_cast<float>(group.rank() + 1)),
              std::ptrdiff_t{kCount});
  });
}

// The choice of algorithm depends on the memory, so all ranks must agree; otherwise all get a Mismatch.
TEST(GroupMemory, OnOneRankOnlyIsAMismatchThatSaysSo) {
  const auto failures =
      test::outcomes_over("shm", 3,
                          [](Group& group) {
                            const auto memory = group.allocate<float>(1000);
                            std::vector<float> own(1000);
                            allreduce(group, group.rank() == 1 ? std::span(memory.get(), 1000) : std::span(own));
                          },
                          {.timeout = 20s});
  for (const std::exception_ptr& failure : failures) test::expect_thrown<Mismatch>(failure, {"in the group's memory"});
}

}  // namespace
}  // namespace syncopate
