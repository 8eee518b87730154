// Scopes: collectives over the ranks of a host and over those of equal place, on the links of their group.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "ranks.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kCount = 3003;
// Hosts {0 1 2} {3 4 5} {6 7}: ranks 2 and 5 have no counterparts on every host.
const GroupOptions kUneven{.timeout = 20s, .ranks_per_host = 3};

std::vector<float> of_rank(int rank) { return std::vector<float>(kCount, static_cast<float>(rank)); }

float sum_of(const std::vector<int>& ranks) {
  return static_cast<float>(std::accumulate(ranks.begin(), ranks.end(), 0));
}

Range part_of(Group& group, Scope scope) {
  return even_part(kCount, group.scope_ranks(scope).size(), static_cast<std::size_t>(group.scope_rank(scope)));
}

void check_reductions(Group& group, const CollectiveOptions& options) {
  const std::vector<int>& ranks = group.scope_ranks(options.scope);
  auto values = of_rank(group.rank());
  allreduce(group, std::span(values), options);
  EXPECT_EQ(values, std::vector<float>(kCount, sum_of(ranks)));

  values = of_rank(group.rank());
  CollectiveOptions average = options;
  average.op = ReduceOp::average;
  allreduce(group, std::span(values), average);
  EXPECT_FLOAT_EQ(values[kCount - 1], sum_of(ranks) / static_cast<float>(ranks.size()));

  values = of_rank(group.rank());
  const Range mine = reduce_scatter(group, std::span(values), options);
  EXPECT_EQ(mine, part_of(group, options.scope));
  EXPECT_TRUE(std::all_of(values.begin() + static_cast<std::ptrdiff_t>(mine.begin),
                          values.begin() + static_cast<std::ptrdiff_t>(mine.end),
                          [&](float value) { return value == sum_of(ranks); }));
}

void check_copies(Group& group, CollectiveOptions options) {
  const std::vector<int>& ranks = group.scope_ranks(options.scope);
  const std::size_t size = ranks.size();
  auto values = of_rank(group.rank());
  allgather(group, std::span(values), options);
  for (std::size_t i = 0; i < size; ++i)
    EXPECT_EQ(values[even_part(kCount, size, i).begin], static_cast<float>(ranks[i]));

  std::vector<float> in(size * 5, static_cast<float>(group.rank())), out(in.size());
  alltoall(group, std::span(in), std::span(out), options);
  for (std::size_t i = 0; i < size; ++i) EXPECT_EQ(out[i * 5 + 4], static_cast<float>(ranks[i]));

  std::vector<std::size_t> parts(size);
  std::iota(parts.begin(), parts.end(), 0);
  std::vector<float> all(size * (size - 1) / 2, static_cast<float>(group.rank()));
  allgather_v(group, std::span(all), parts, options);
  if (size > 1) {
    EXPECT_EQ(all.back(), static_cast<float>(ranks.back()));
  }

  options.root = static_cast<int>(size) - 1;
  values = of_rank(group.rank());
  broadcast(group, std::span(values), options);
  EXPECT_EQ(values, of_rank(ranks.back()));
}

TEST(Scope, GivesEveryPartItsOwnResultOverEveryTransport) {
  test::on_every_transport(
      8,
      [](Group& group) {
        for (int round = 0; round < 2; ++round)
          for (const Scope scope : {Scope::host, Scope::across, Scope::group}) {
            if (group.scope_ranks(scope).empty()) {  // numbers of operations stay alike whatever is called
              for (int call = 0; call < 7; ++call) barrier(group, {.scope = scope});
              continue;
            }
            check_reductions(group, {.scope = scope});
            check_copies(group, {.scope = scope});
          }
      },
      kUneven);
}

TEST(Scope, RanksAreThoseOfTheHostAndOfEqualPlace) {
  const auto groups = Group::threads(8, kUneven);
  EXPECT_EQ(groups[4]->scope_ranks(Scope::host), (std::vector<int>{3, 4, 5}));
  EXPECT_EQ(groups[4]->scope_rank(Scope::host), 1);
  EXPECT_EQ(groups[4]->scope_ranks(Scope::across), (std::vector<int>{1, 4, 7}));
  EXPECT_EQ(groups[4]->scope_ranks(Scope::group).size(), 8U);
  EXPECT_EQ(groups[5]->scope_ranks(Scope::across), std::vector<int>{});
  EXPECT_EQ(groups[5]->scope_rank(Scope::across), -1);
}

TEST(Scope, AcrossHostsARankWithoutCounterpartsReturnsAtOnceAndKeepsItsData) {
  const auto groups = Group::threads(8, kUneven);
  auto values = of_rank(5);
  allreduce(*groups[5], std::span(values), {.scope = Scope::across});  // no other rank has called it
  EXPECT_EQ(reduce_scatter(*groups[5], std::span(values), {.scope = Scope::across}).size(), 0U);
  EXPECT_EQ(values, of_rank(5));
}

TEST(Scope, LeavesARankThatIsAloneItsData) {
  test::on_groups(3,
                  [](Group& group) {
                    auto values = of_rank(group.rank());
                    allreduce(group, std::span(values), {.scope = Scope::host});
                    EXPECT_EQ(values, of_rank(group.rank()));
                    allreduce(group, std::span(values), {.scope = Scope::across});
                    EXPECT_EQ(values, std::vector<float>(kCount, 3));
                  },
                  {.ranks_per_host = 1});
}

// A hierarchical sharded update on a vector in memory that the ranks share.
TEST(Scope, NarrowsAndWidensAVectorOfTheGroupsMemory) {
  test::on_every_transport(
      6,
      [](Group& group) {
        const auto memory = group.allocate<float>(kCount);
        const std::span values(memory.get(), kCount);
        for (int round = 1; round <= 3; ++round) {
          std::ranges::fill(values, static_cast<float>(round * group.rank()));
          const Range mine = reduce_scatter(group, values, {.scope = Scope::host});
          allreduce(group, values.subspan(mine.begin, mine.size()), {.scope = Scope::across});
          allgather(group, values, {.scope = Scope::host});
          for (const float value : values) ASSERT_EQ(value, static_cast<float>(15 * round));
        }
      },
      kUneven);
}

TEST(Scope, LetsHostsCarryDifferentLengths) {
  test::on_every_transport(
      5,
      [](Group& group) {
        const auto host = static_cast<std::size_t>(group.rank() / 3);
        for (std::size_t round = 0; round < 5; ++round) {
          std::vector<std::int64_t> values(100 + 7 * host + round, 1);
          allreduce(group, std::span(values), {.scope = Scope::host});
          EXPECT_EQ(values.back(), host == 0 ? 3 : 2);
        }
        barrier(group);
      },
      kUneven);
}

TEST(Scope, ThatDiffersIsAMismatchThatNamesIt) {
  const auto disagree = [](Group& group) {
    auto values = of_rank(group.rank());
    allreduce(group, std::span(values), {.scope = group.rank() == 1 ? Scope::group : Scope::host});
    barrier(group);
  };
  auto groups = Group::threads(4, {.timeout = 20s, .ranks_per_host = 2});
  const auto in_process = test::outcomes(4, [&](int rank) { disagree(*groups[static_cast<std::size_t>(rank)]); });
  const auto over_tcp = test::outcomes_over("tcp", 4, disagree, {.timeout = 20s, .ranks_per_host = 2});
  for (const auto& failures : {in_process, over_tcp})
    for (const std::exception_ptr& failure : failures) test::expect_thrown<Mismatch>(failure, {"within the host"});
}

TEST(Scope, WithDifferentLengthsInOnePartIsAMismatchOnEveryRank) {
  const auto disagree = [](Group& group) {
    std::vector<float> values(group.rank() == 1 ? 100 : 200);
    allreduce(group, std::span(values), {.scope = Scope::host});
    barrier(group);
  };
  for (const std::exception_ptr& failure :
       test::outcomes_over("shm", 4, disagree, {.timeout = 20s, .ranks_per_host = 2}))
    test::expect_thrown<Mismatch>(failure, {"f32 x 100 sum within the host"});
}

TEST(Scope, TakesRootsPartsAndPeersOfItsRanksOnly) {
  const auto groups = Group::threads(8, kUneven);
  auto values = of_rank(0);
  const CollectiveOptions options{.root = 3, .scope = Scope::host};
  const auto has = [](const auto& call, const char* what) { test::expect_thrown<Misuse>(call, {what}); };
  const std::span span(values);
  has([&] { broadcast(*groups[0], span, options); }, "root is 3; allowed: 0 to 2");
  has([&] { broadcast(*groups[7], span, {.root = 2, .scope = Scope::host}); }, "root is 2; allowed: 0 to 1");
  has([&] { allgather_v(*groups[0], span, std::vector<std::size_t>(8, 1), options); }, "root");
  has([&] { allgather_v(*groups[0], span, std::vector<std::size_t>(8, 1), {.scope = Scope::host}); },
      "each of 3 ranks");
  has([&] { alltoall(*groups[0], span.first(4), span.last(4), {.scope = Scope::host}); }, "multiples of the ranks");
  has([&] { send(*groups[0], 1, span, {.scope = Scope::host}); }, "a message over scope host");
}

}  // namespace
}  // namespace syncopate
