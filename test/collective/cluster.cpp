// Selection by a cluster: timings decide if they exist, else cost laws; all ranks use rank 0's file.
#include "syncopate/cluster.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "ranks.hpp"
#include "syncopate/error.hpp"
#include "syncopate/plan.hpp"
#include "thrown.hpp"

namespace syncopate {
namespace {

/// mst is fastest up to about 8 KiB, ring above; no cost law predicts either.
constexpr const char* kOddNetwork = R"({"ranks": 3, "ranks_per_host": 3,
    "links": {"intra": {"alpha_s": 1e-6, "beta_s_per_byte": 1e-9, "gamma_s_per_byte": 1e-10}},
    "costs": {"allreduce": {"ring": {"table": [[1024, 4e-4], [65536, 1e-4]]},
                            "mst": {"table": [[1024, 1e-4], [65536, 4e-4]]},
                            "binary_tree": {"affine": {"a_s": 1, "b_s_per_byte": 0}}}}})";

NetworkCost odd_network() { return cost_of(parse_cluster(kOddNetwork, "odd.json")); }

std::string fastest(const PlanRequest& request, const NetworkCost& cost) {
  return sort_algorithms(request, cost).front().algorithm;
}

double measured(const char* algorithm, std::uint64_t bytes) {
  for (const RankedAlgorithm& entry : sort_algorithms({.ranks = 3, .bytes = bytes}, odd_network()))
    if (entry.algorithm == algorithm) return entry.measured_s.value_or(-1);
  return -2;
}

TEST(Selection, GoesByTheTimingsWhereThereAreSome) {
  EXPECT_EQ(fastest({.ranks = 3, .bytes = 1024}, odd_network()), "mst");
  EXPECT_EQ(fastest({.ranks = 3, .bytes = 7000}, odd_network()), "mst");
  EXPECT_EQ(fastest({.ranks = 3, .bytes = 9000}, odd_network()), "ring");
  EXPECT_EQ(price_plans({.ranks = 3, .bytes = 9000}, odd_network()).algorithm, "ring") << "plans are made alike";
}

TEST(Selection, InterpolatesInTheLogarithmsOfSizeAndTime) {
  EXPECT_NEAR(measured("ring", 1024), 4e-4, 1e-12);
  EXPECT_NEAR(measured("ring", 65536), 1e-4, 1e-12);
  EXPECT_NEAR(measured("ring", 8192), 2e-4, 1e-9) << "half way from 2^10 to 2^16, half way from 4 to 1";
  EXPECT_NEAR(measured("mst", 8192), 2e-4, 1e-9);
  EXPECT_NEAR(measured("binary_tree", 8192), 1, 1e-9);
}

TEST(Selection, FollowsTheLawsBeyondTheEndsOfATable) {
  const auto law = [](const char* algorithm, std::uint64_t bytes) {
    for (const RankedAlgorithm& entry : sort_algorithms({.ranks = 3, .bytes = bytes}, odd_network()))
      if (entry.algorithm == algorithm) return entry.law_s;
    return 0.0;
  };
  for (const char* algorithm : {"ring", "mst"})
    for (const auto& [bytes, end] : {std::pair<std::uint64_t, std::uint64_t>{4, 1024}, {1 << 24, 65536}})
      EXPECT_NEAR(measured(algorithm, bytes), measured(algorithm, end) * law(algorithm, bytes) / law(algorithm, end),
                  1e-9)
          << algorithm << ", " << bytes;
}

TEST(Selection, LetsWhatWasNotMeasuredStandBehind) {
  const auto ranking = sort_algorithms({.ranks = 3, .bytes = 1 << 20}, odd_network());
  bool is_measured = true;
  for (const RankedAlgorithm& entry : ranking) {
    EXPECT_TRUE(is_measured || !entry.measured_s) << entry.algorithm;
    is_measured = entry.measured_s.has_value();
  }
  EXPECT_FALSE(is_measured) << "most have no table";
}

TEST(Selection, GoesByLawsForOtherRanksHostsAndCollectives) {
  const auto is_by_law = [](const PlanRequest& request) {
    const auto of_links = sort_algorithms(request, NetworkCost(odd_network().inter, odd_network().intra));
    const auto found = sort_algorithms(request, odd_network());
    for (std::size_t i = 0; i < found.size(); ++i)
      if (found[i].measured_s || found[i].algorithm != of_links[i].algorithm) return false;
    return found.size() == of_links.size();
  };
  EXPECT_FALSE(is_by_law({.ranks = 3, .bytes = 1024}));
  EXPECT_TRUE(is_by_law({.ranks = 4, .bytes = 1024}));
  EXPECT_TRUE(is_by_law({.ranks = 2, .bytes = 1024}));
  EXPECT_TRUE(is_by_law({.ranks = 3, .bytes = 1024, .hosts = {0, 1, 2}}));
  EXPECT_TRUE(is_by_law({.collective = Collective::broadcast, .ranks = 3, .bytes = 1024}));
}

TEST(Selection, DoesNotBelieveTimingsOfAnotherTransport) {
  Cluster cluster = parse_cluster(kOddNetwork, "odd.json");
  cluster.transport = "tcp";
  EXPECT_EQ(cost_of(cluster, "tcp").measured.size(), 3U);
  EXPECT_EQ(cost_of(cluster, "tcp").intra.beta_s_per_byte, 1e-9);
  EXPECT_TRUE(cost_of(cluster, "shm").measured.empty());
  cluster.transport = "shm";
  for (const Memory fitted : {Memory::own, Memory::group})
    for (const Memory asked : {Memory::own, Memory::group}) {
      cluster.memory = fitted;
      EXPECT_EQ(cost_of(cluster, "shm", asked).measured.empty(), fitted != asked);
      EXPECT_EQ(cost_of(cluster, "shm", asked).intra.medium, usual_cost("shm", asked).intra.medium);
    }
  cluster.transport = "tcp";
  EXPECT_EQ(cost_of(cluster, "shm").intra.beta_s_per_byte, usual_cost("shm").intra.beta_s_per_byte);
}

TEST(UsualCost, OfSharedMemoryIsNotThatOfAWire) {
  EXPECT_EQ(usual_cost("tcp").intra.beta_s_per_byte, LinkCost().beta_s_per_byte);
  for (const char* transport : {"shm", "shm+tcp", "inproc"}) {
    EXPECT_LT(usual_cost(transport).intra.beta_s_per_byte, 1e-9) << transport;
    EXPECT_LT(usual_cost(transport).intra.alpha_s, 1e-5) << transport;
    EXPECT_EQ(usual_cost(transport).inter.beta_s_per_byte, LinkCost().beta_s_per_byte) << transport;
  }
}

/// Only mst was measured: it is taken at every size, though no law would for large ones.
constexpr const char* kMstNetwork =
    R"({"ranks": 3, "ranks_per_host": 3, "costs": {"allreduce": {"mst": {"affine": {"a_s": 1e-4, "b_s_per_byte": 0}}}}})";

class ClusterFiles : public testing::Test {
 protected:
  ClusterFiles() {
    std::string folder = (std::filesystem::temp_directory_path() / "syncopate-cluster-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no folder");
    folder_ = folder;
  }
  ~ClusterFiles() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& text) const {
    const std::string path = folder_ / "cluster.json";
    std::ofstream(path) << text;
    return path;
  }
  std::filesystem::path folder_;
};

/// Rank 0's sent bytes in an all-reduce, in vectors: 2 with mst, 4/3 with the algorithm that the laws select here.
double vectors_sent(Group& group) {
  std::vector<float> values(100'000, 1);
  barrier(group);
  const std::uint64_t before = group.traffic().sent_bytes;
  allreduce(group, std::span(values));
  EXPECT_EQ(values.back(), 3);
  return static_cast<double>(group.traffic().sent_bytes - before) / (100'000 * sizeof(float));
}

TEST_F(ClusterFiles, OfRankZeroHoldsOnEveryRank) {
  const std::string wanted = file(kMstNetwork);
  for (const char* transport : {"tcp", "shm"}) {
    std::string folder = (folder_ / transport).string();
    test::on_ranks(3, [&](int rank) {
      GroupOptions options{
          .rank = rank, .size = 3, .rendezvous = "file://" + folder, .transport = transport_named(transport)};
      options.silence = std::chrono::seconds(10);
      // Rank 1 has none, rank 2 one that does not exist: only rank 0 reads its own.
      options.cluster = rank == 0 ? wanted : rank == 2 ? "/nonexistent/cluster.json" : "";
      const auto group = Group::join(options);
      const double sent = vectors_sent(*group);
      if (rank == 0) {
        EXPECT_GT(sent, 1.9) << transport;
      }
    });
  }
}

TEST_F(ClusterFiles, AreNotNeeded) {
  test::on_every_transport(3, [](Group& group) {
    const double sent = vectors_sent(group);
    if (group.rank() == 0) {
      EXPECT_LT(sent, 1.5) << group.transport();
    }
  });
}

TEST_F(ClusterFiles, HoldForGroupsOfThreadsAndSubGroups) {
  test::on_groups(3,
                  [](Group& group) {
                    const auto same = group.split(0, group.rank());
                    for (Group* each : {&group, same.get()}) {
                      const double sent = vectors_sent(*each);
                      if (group.rank() == 0) {
                        EXPECT_GT(sent, 1.9);
                      }
                    }
                  },
                  {.cluster = file(kMstNetwork)});
}

/// Expects the same error on each rank of a group that cannot agree on costs.
template <class E>
void expect_everywhere(const std::string& cluster, const std::vector<std::string>& words) {
  for (const char* transport : {"tcp", "shm"}) {
    std::string folder = (std::filesystem::temp_directory_path() / "syncopate-XXXXXX").string();
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    const auto ends = test::outcomes(3, [&](int rank) {
      GroupOptions options{
          .rank = rank, .size = 3, .rendezvous = "file://" + folder, .transport = transport_named(transport)};
      options.silence = std::chrono::seconds(10);
      options.cluster = rank == 0 ? cluster : "";
      static_cast<void>(Group::join(options));
    });
    std::filesystem::remove_all(folder);
    for (const std::exception_ptr& end : ends) {
      SCOPED_TRACE(transport);
      test::expect_thrown<E>(end, words);
    }
  }
}

TEST_F(ClusterFiles, ThatAreMissingAreASystemFailureOnEveryRank) {
  expect_everywhere<SystemFailure>(
      "/nonexistent/c.json", {"/nonexistent/c.json", "rank 0", "No such file", "syncopate fit", "SYNCOPATE_CLUSTER"});
  expect_everywhere<SystemFailure>(folder_, {folder_, "Is a directory"});
}

TEST_F(ClusterFiles, ThatAreDamagedAreMisuseOnEveryRankThatNamesThePlace) {
  expect_everywhere<Misuse>(file("{\"ranks\": 3,\n\"links\""), {"cluster.json", "line 2", "syncopate fit"});
  expect_everywhere<Misuse>(file(""), {"cluster.json", "line 1"});
  expect_everywhere<Misuse>(file(R"({"ranks": 3, "costs": {"allreduce": {"snail": {"table": [[1, 1]]}}}})"),
                            {"cluster.json.costs.allreduce.snail", "algorithm 'snail' is unknown", "allowed: auto"});
  expect_everywhere<Misuse>(file(R"({"ranks": 3, "costs": {"allredcue": {"table": [[1, 1]]}}})"),
                            {"cluster.json.costs.allredcue", "allreduce"});
  expect_everywhere<Misuse>(file(R"({"ranks": 3, "links": {"inter": {"alpha_s": -1, "beta_s_per_byte": 1}}})"),
                            {"cluster.json.links.inter.alpha_s", "is -1", "allowed"});
}

TEST_F(ClusterFiles, OfGroupsOfThreadsAreCheckedToo) {
  EXPECT_THROW(static_cast<void>(Group::threads(2, {.cluster = "/nonexistent/c.json"})), SystemFailure);
  EXPECT_THROW(static_cast<void>(Group::threads(2, {.cluster = file("[]")})), Misuse);
}

}  // namespace
}  // namespace syncopate
