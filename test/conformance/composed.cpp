// Composed algorithms: grids with ranks left over, hosts of any size, any algorithm within and between them.
#include <gtest/gtest.h>

#include "collective/select/select.hpp"
#include "ranks.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate {
namespace {

std::string flaw_of(const PlanRequest& request) {
  return verify_plans(plan_collective(request), request.collective, request.root);
}

TEST(Torus, IsProvedOnEveryGridThatFits) {
  for (int ranks = 2; ranks <= 17; ++ranks)
    for (std::uint32_t rows = 1; rows <= static_cast<unsigned>(ranks); ++rows)
      for (std::uint32_t columns = 1; rows * columns <= static_cast<unsigned>(ranks); ++columns) {
        const Tuning tuning{.rows = rows, .columns = columns};
        EXPECT_EQ(flaw_of({Collective::allreduce, "torus_2d", ranks, 0, 0, tuning}), "")
            << ranks << " ranks, " << rows << " x " << columns;
      }
}

TEST(Torus, IsAsSquareAsAllRanksAllow) {
  const auto rounds = [](int ranks, Tuning tuning) {
    return price_plans({Collective::allreduce, "torus_2d", ranks, 0, 1 << 20, std::move(tuning)}, LinkCost{1, 0, 0})
        .predicted_s;
  };
  EXPECT_EQ(rounds(12, {}), rounds(12, {.rows = 3, .columns = 4}));
  EXPECT_EQ(rounds(12, {.rows = 2}), 2 * (1 + 5));
  EXPECT_EQ(rounds(7, {}), 2 * 6) << "a prime number of ranks makes one row";
}

TEST(Torus, ThatDoesNotFitIsMisuseOnEveryRankAndHarmsNothing) {
  test::on_groups(5, [](Group& group) {
    std::vector<float> values(100, 1);
    const CollectiveOptions options{.algorithm = "torus_2d", .tuning = {.rows = 2, .columns = 3}};
    test::expect_thrown<Misuse>([&] { allreduce(group, std::span(values), options); }, {"2 x 3", "allowed"});
    allreduce(group, std::span(values), {.algorithm = "torus_2d", .tuning = {.rows = 2, .columns = 2}});
    EXPECT_EQ(values[99], 5);
  });
}

std::vector<std::string> offering(Collective collective) {
  std::vector<std::string> names;
  for (const collective::Algorithm* entry : collective::algorithms())
    if (entry->offers(collective) && !entry->composed) names.emplace_back(entry->name);
  return names;
}

const std::vector<std::vector<std::uint32_t>> kHosts = {
    {0, 0, 1, 1},                    // even
    {0, 1, 0, 1, 0, 1},              // ranks dealt out to hosts
    {0, 0, 0, 1, 1},                 // uneven
    {2, 2, 2, 2, 2, 0, 1, 1},        // one host of one rank
    {0, 1, 2, 3},                    // a rank each
    {5, 5, 5},                       // one host
    {0, 0, 0, 1, 1, 2, 2, 2, 2, 1},  // three of them
};

TEST(Hierarchical, IsProvedWithAnyAlgorithmWithinAndBetweenHosts) {
  for (const Collective collective : {Collective::allreduce, Collective::broadcast, Collective::reduce})
    for (const auto& hosts : kHosts)
      for (const std::string& inner : offering(collective))
        for (const std::string& outer : offering(collective)) {
          const int ranks = static_cast<int>(hosts.size());
          for (int root = 0; root < (collective == Collective::allreduce ? 1 : ranks); ++root)
            EXPECT_EQ(flaw_of({collective, "hierarchical", ranks, root, 0, {0, 0, 0, inner, outer}, hosts}), "")
                << name_of(collective) << ' ' << inner << " in " << outer << ", root " << root;
        }
}

TEST(Hierarchical, IsProvedForManyRanksOnHostsOfEverySize) {
  for (int ranks = 2; ranks <= 64; ++ranks)
    for (std::uint32_t per_host = 1; per_host <= 8; ++per_host) {
      PlanRequest request{.algorithm = "hierarchical", .ranks = ranks, .ranks_per_host = per_host};
      EXPECT_EQ(flaw_of(request), "") << ranks << " ranks, " << per_host << " per host";
    }
}

TEST(Hierarchical, TakesTheTimeOfItsLawWhereHostsAreFast) {
  const NetworkCost cost({1e-4, 1e-8, 1e-9}, {1e-6, 1e-9, 1e-9});
  for (const char* inner : {"ring", "mst", "linear_pipeline", "bidirectional_exchange"})
    for (const std::uint32_t per_host : {2U, 4U, 8U}) {
      const PlanRequest request{
          Collective::allreduce, "hierarchical", 16, 0, 1 << 20, {0, 0, 0, inner, "ring"}, {}, per_host};
      EXPECT_NEAR(price_plans(request, cost).predicted_s / collective::select::choose(request, cost).law_s, 1, 0.1)
          << inner << ", " << per_host << " per host";
    }
}

TEST(Hierarchical, IsWhatAutoTakesWhereTheNetworkIsSlowAndHostsAreFast) {
  const NetworkCost cost({1e-4, 1e-7, 1e-10}, {1e-7, 1e-10, 1e-10});
  const PlanRequest request{.ranks = 32, .bytes = 1 << 20, .ranks_per_host = 8};
  EXPECT_EQ(price_plans(request, cost).algorithm, "hierarchical");
  EXPECT_NE(price_plans({.ranks = 32, .bytes = 1 << 20}, cost).algorithm, "hierarchical") << "on one host";
}

TEST(Hierarchical, RefusesWhatIsNoPartByName) {
  const auto refuses = [](const Tuning& tuning, const char* why) {
    test::expect_thrown<Misuse>(
        [&] {
          return plan_collective({Collective::allreduce, "hierarchical", 4, 0, 0, tuning, {}, 2});
        },
        {why});
  };
  refuses({.inner = "zigzag"}, "allowed: auto, ");
  refuses({.outer = "zigzag"}, "allowed: auto, ");
  refuses({.inner = "hierarchical"}, "part");
}

TEST(Hierarchical, GivesEveryRankTheSum) {
  for (const int ranks : {3, 5, 8, 13})
    for (const char* inner : {"ring", "mst", "recursive_doubling", "double_binary_tree"}) {
      auto groups = Group::threads(ranks, {.ranks_per_host = 3});
      test::on_ranks(ranks, [&](int rank) {
        std::vector<std::int64_t> values(1003, rank);
        allreduce(*groups[static_cast<std::size_t>(rank)], std::span(values),
                  {.algorithm = "hierarchical", .tuning = {.inner = inner, .outer = "ring"}});
        EXPECT_EQ(values, std::vector<std::int64_t>(1003, ranks * (ranks - 1) / 2)) << inner;
      });
    }
}

}  // namespace
}  // namespace syncopate
