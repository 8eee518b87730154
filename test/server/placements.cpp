// Placements: each entry balances as it promises, and published models as in the thesis; laws of all: test/laws.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "network/architecture.hpp"
#include "property.hpp"
#include "server/placement.hpp"
#include "syncopate/error.hpp"

namespace syncopate::server {
namespace {

using Sizes = std::vector<std::size_t>;

std::size_t fullest(std::string_view name, const Demand& demand) {
  return std::ranges::max(loads_of(shards_of(placement_named(name), demand), demand.servers));
}

/// The least load of the fullest server among all placements of whole tables, by trying all.
std::size_t optimum(const Sizes& tables, std::size_t servers) {
  std::size_t ways = 1, best = std::accumulate(tables.begin(), tables.end(), std::size_t{0});
  for (std::size_t i = 0; i < tables.size(); ++i) ways *= servers;
  for (std::size_t way = 0; way < ways; ++way) {
    Sizes loads(servers);
    std::size_t digits = way;
    for (const std::size_t table : tables) loads[digits % servers] += table, digits /= servers;
    best = std::min(best, std::ranges::max(loads));
  }
  return best;
}

/// Bytes of an architecture's tensors: the variables that TensorFlow places.
Sizes tensors_of(std::string_view architecture) {
  Sizes bytes;
  for (const auto& tensor : network::architecture_named(architecture).tensors()) bytes.push_back(4 * tensor.elements);
  return bytes;
}

double variation(std::string_view placement, const Sizes& tables, std::size_t servers) {
  return variation_of(loads_of(shards_of(placement_named(placement), {tables, servers}), servers));
}

TEST(Uniform, LoadsDifferByAtMostOneGrainOverAllTables) {
  const Sizes tables(30, 5 * 8);  // five grains on four servers: one to spare in each table
  const auto loads = loads_of(shards_of(placement_named("uniform"), {tables, 4, 8}), 4);
  EXPECT_EQ(loads, (Sizes{38 * 8, 38 * 8, 37 * 8, 37 * 8})) << "150 grains";
}

TEST(Uniform, DividesATableThatIsLargerThanAServersShare) {
  EXPECT_EQ(shards_of(placement_named("uniform"), {Sizes{40, 4}, 2}),
            (std::vector<Shard>{{0, 0, 20, 0}, {0, 20, 40, 1}, {1, 0, 4, 0}}));
}

TEST(RoundRobin, TakesServersInTurnWhateverTheSizes) {
  EXPECT_EQ(loads_of(shards_of(placement_named("round_robin"), {Sizes{400, 4, 400, 4, 400}, 2}), 2), (Sizes{1200, 8}));
}

TEST(Lpt, IsWithinGrahamsBoundOfTheBestPlacement) {
  EXPECT_TRUE(rc::check([] {
    const auto tables = *rc::gen::inRange<std::size_t>(1, 9);
    const auto servers = *rc::gen::inRange<std::size_t>(2, 4);
    const auto sizes = *rc::gen::container<Sizes>(tables, rc::gen::inRange<std::size_t>(1, 60));
    const auto least = static_cast<double>(optimum(sizes, servers));
    const double bound = 4.0 / 3 - 1.0 / (3 * static_cast<double>(servers));
    RC_ASSERT(static_cast<double>(fullest("lpt", {sizes, servers, 1})) <= bound * least + 1e-9);
  }));
}

TEST(Lpt, ReachesGrahamsBoundOnHisExample) {
  // Graham 1969: 2m + 1 tables of 2m - 1, 2m - 1, 2m - 2, 2m - 2, ..., m + 1, m + 1, m, m, m; here m = 3.
  const Sizes tables{5, 5, 4, 4, 3, 3, 3};
  EXPECT_EQ(optimum(tables, 3), 9U);
  EXPECT_EQ(fullest("lpt", {tables, 3, 1}), 11U) << "4/3 - 1/9 = 11/9";
}

TEST(Lpt, CannotBalanceATableLargerThanAServersShare) {
  const Sizes vgg = tensors_of("vgg16");
  EXPECT_EQ(fullest("lpt", {vgg, 4}), 4U * 102'760'448) << "fc6 alone";
  EXPECT_EQ(fullest("uniform", {vgg, 4}), 138'357'544U);
}

// The coefficients were computed separately from this code, from published layer tables. If weights and biases
// alternate (GoogLeNet, Inception of TF-slim), two of four servers get the biases.
TEST(Variation, OnFourServersIsAsFigure53OfTheThesisOrdersIt) {
  struct Row {
    std::string_view model;
    Sizes tensors;
    std::size_t parameters, shards;
    double round_robin, lpt;
  };
  const Row rows[] = {{"resnet110", tensors_of("resnet110"), 1'727'962, 1316, 0.0226, 0.0000158},
                      {"googlenet", tensors_of("googlenet"), 6'998'552, 464, 1.3173, 0.0000038},
                      {"inception_v4_slim", tensors_of("inception_v4_slim"), 42'649'769, 1200, 1.0076, 0.0000012},
                      {"vgg16", tensors_of("vgg16"), 138'357'544, 128, 1.3498, 1.1411979}};
  for (const auto& row : rows) {
    const Sizes& tensors = row.tensors;
    EXPECT_EQ(std::accumulate(tensors.begin(), tensors.end(), std::size_t{0}), 4 * row.parameters) << row.model;
    EXPECT_EQ(shards_of(placement_named("uniform"), {tensors, 4}).size(), row.shards) << row.model;
    EXPECT_NEAR(variation("round_robin", tensors, 4), row.round_robin, 5e-5) << row.model;
    EXPECT_NEAR(variation("lpt", tensors, 4), row.lpt, 5e-7) << row.model;
    EXPECT_LT(variation("uniform", tensors, 4), 3e-6) << row.model;
    EXPECT_LT(row.lpt, row.round_robin) << row.model;
  }
}

TEST(Variation, IsOfTheServersAsAWholePopulation) {
  EXPECT_DOUBLE_EQ(variation_of(Sizes{1, 3}), 0.5);
  EXPECT_EQ(variation_of(Sizes{0, 0}), 0);
}

TEST(Placement, ThatIsAskedForTheImpossibleIsMisuse) {
  for (const Placement* placement : placements()) {
    EXPECT_THROW(static_cast<void>(shards_of(*placement, {Sizes{4}, 0})), Misuse) << placement->name;
    EXPECT_THROW(static_cast<void>(shards_of(*placement, {Sizes{6}, 2, 4})), Misuse) << placement->name;
    EXPECT_THROW(static_cast<void>(shards_of(*placement, {Sizes{6}, 2, 0})), Misuse) << placement->name;
  }
  EXPECT_THROW(static_cast<void>(placement_named("best")), Misuse);
}

TEST(Placement, ThatLeavesBytesOutOrKeepsThemTwiceIsNamed) {
  const Sizes tables{8, 8};
  const Demand demand{tables, 2};
  EXPECT_EQ(misplaced(std::vector<Shard>{{0, 0, 8, 0}, {1, 0, 8, 1}}, demand), "");
  EXPECT_NE(misplaced(std::vector<Shard>{{0, 0, 8, 0}}, demand), "");
  EXPECT_NE(misplaced(std::vector<Shard>{{0, 0, 4, 0}, {1, 0, 8, 1}}, demand), "");
  EXPECT_NE(misplaced(std::vector<Shard>{{0, 0, 8, 0}, {0, 4, 8, 0}, {1, 0, 8, 1}}, demand), "");
  EXPECT_NE(misplaced(std::vector<Shard>{{0, 0, 8, 0}, {1, 0, 12, 1}}, demand), "");
  EXPECT_NE(misplaced(std::vector<Shard>{{0, 0, 8, 0}, {1, 0, 8, 2}}, demand), "");
  EXPECT_NE(misplaced(std::vector<Shard>{{0, 0, 8, 0}, {1, 0, 2, 1}, {1, 2, 8, 1}}, demand), "");
}

}  // namespace
}  // namespace syncopate::server
