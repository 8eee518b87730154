// Profile and cluster files: valid files are read; errors name the place in the file.
#include <gtest/gtest.h>

#include <filesystem>

#include "simulate/costs.hpp"
#include "syncopate/error.hpp"
#include "syncopate/predict.hpp"
#include "thrown.hpp"

namespace syncopate {
namespace {

/// A file, and how the text of its refusal begins: with the place in the file.
struct Refused {
  std::string json, begins;
};

std::string profile_refusal(const std::string& json) {
  return test::thrown<Misuse>([&] { return parse_profile(json, "p.json"); });
}
std::string cluster_refusal(const std::string& json) {
  return test::thrown<Misuse>([&] { return parse_cluster(json, "c.json"); });
}

TEST(ProfileFile, HoldsLayersInForwardOrder) {
  const Profile profile = parse_profile(R"({"model": "m", "forward_s": 0.5, "note": "more keys are welcome",
      "layers": [{"name": "a", "elements": 10, "backward_s": 0.25}, {"name": "b", "elements": 3, "backward_s": 0}]})",
                                        "p.json");
  EXPECT_EQ(profile.model, "m");
  EXPECT_EQ(profile.forward_s, 0.5);
  ASSERT_EQ(profile.layers.size(), 2U);
  EXPECT_EQ(profile.layers[0].name, "a");
  EXPECT_EQ(profile.layers[0].bytes, 40U) << "4 bytes an element";
  EXPECT_EQ(profile.layers[0].backward_s, 0.25);
  EXPECT_EQ(profile.layers[1].bytes, 12U);
}

TEST(ProfileFile, MayHaveSmallerElements) {
  const Profile profile = parse_profile(
      R"({"model": "m", "forward_s": 0, "bytes_per_element": 2, "layers": [{"name": "a", "elements": 5, "backward_s": 1}]})",
      "p.json");
  EXPECT_EQ(profile.layers[0].bytes, 10U);
}

TEST(ProfileFile, IsRefusedByThePlaceThatIsWrong) {
  const auto layer = [](const std::string& members) {
    return R"({"model": "m", "forward_s": 1, "layers": [{"name": "a", )" + members + "}]}";
  };
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  const Refused all[] = {
      {R"({"forward_s": 1, "layers": []})", "p.json: \"model\" is missing"},
      {R"({"model": "m", "forward_s": "1", "layers": []})", "p.json.forward_s: "},
      {R"({"model": "m", "forward_s": -1, "layers": []})", "p.json.forward_s: "},
      {R"({"model": "m", "forward_s": 1, "layers": {}})", "p.json.layers: a list is expected here, not object"},
      {R"({"model": "m", "forward_s": 1, "layers": []})", "p.json.layers: is empty"},
      {layer(R"("elements": 1)"), "p.json.layers[0]: \"backward_s\" is missing"},
      {layer(R"("elements": 0, "backward_s": 1)"), "p.json.layers[0].elements: is 0; allowed: "},
      {layer(R"("elements": 1.5, "backward_s": 1)"), "p.json.layers[0].elements: is 1.5; allowed: "},
      {layer(R"("elements": 1, "backward_s": 0)"), "p.json.layers: every backward_s is 0; a profile needs measured"},
      {R"({"model": "m", "forward_s": 1, "bytes_per_element": 4294967296,
           "layers": [{"name": "a", "elements": 4294967296, "backward_s": 1}]})",
       "p.json.layers[0]: all layers together have more than 9000000000000000 bytes"},
      {"{\n\"model\": oops}", "p.json: invalid JSON at line 2"},
      {R"({"forward_s": 1e999})", "p.json: a number is too large"},
      {"{\"model\": " + deep + "}", "p.json.model: a text is expected here, not array"},
      {"[]", "p.json"},
  };
  for (const auto& [json, begins] : all)
    EXPECT_EQ(profile_refusal(json).find(begins), 0U) << begins << " in: " << profile_refusal(json);
}

TEST(ProfileFile, ThatCannotBeReadIsASystemFailure) {
  EXPECT_THROW(static_cast<void>(read_profile("/no/such/file.json")), SystemFailure);
  EXPECT_THROW(static_cast<void>(read_cluster("/no/such/file.json")), SystemFailure);
}

TEST(ClusterFile, HasLinksOfTwoKinds) {
  const Cluster cluster = parse_cluster(
      R"({"ranks": 8, "ranks_per_host": 2, "cpu_s_per_byte": 1e-10, "links": {
          "inter": {"alpha_s": 1e-4, "beta_s_per_byte": 8e-9, "gamma_s_per_byte": 1e-10},
          "intra": {"alpha_s": 1e-6, "beta_s_per_byte": 1e-10}}})",
      "c.json");
  EXPECT_EQ(cluster.ranks, 8);
  EXPECT_EQ(cluster.ranks_per_host, 2);
  EXPECT_EQ(cluster.cpu_s_per_byte, 1e-10);
  ASSERT_TRUE(cluster.inter && cluster.intra);
  EXPECT_EQ(cluster.inter->gamma_s_per_byte, 1e-10);
  EXPECT_EQ(cluster.intra->beta_s_per_byte, 1e-10);
  EXPECT_EQ(cluster.intra->gamma_s_per_byte, 0);
}

TEST(ClusterFile, IsRefusedByThePlaceThatIsWrong) {
  const auto cost = [](const std::string& of_allreduce) {
    return R"({"ranks": 2, "costs": {"allreduce": )" + of_allreduce + "}}";
  };
  const Refused all[] = {
      {R"({"ranks": 8})", R"(c.json: has neither "links" nor "costs": one is needed)"},
      {R"({"ranks": 0, "links": {}})", "c.json.ranks: is 0; allowed: "},
      {R"({"ranks": 2, "links": {}})", R"(c.json.links: has neither "inter" nor "intra": one is needed)"},
      {R"({"ranks": 2, "links": {"intra": {}}})", "c.json.links.intra: \"alpha_s\" is missing"},
      {R"({"ranks": 2, "links": {"inter": {"alpha_s": 1}}})", "c.json.links.inter: \"beta_s_per_byte\" is missing"},
      {cost(R"({"table": []})"), "c.json.costs.allreduce.table: is empty; allowed: at least one row [bytes, seconds]"},
      {cost(R"({"table": [[1, 2, 3]]})"), "c.json.costs.allreduce.table[0]: a row is [bytes, seconds]"},
      {cost(R"({"table": [[8, 1], [4, 1]]})"), "c.json.costs.allreduce.table[1]: sizes must ascend"},
      {cost(R"({"ring": 3})"), "c.json.costs.allreduce"},
      {cost(R"({"affine": {"a_s": 1}})"), "c.json.costs.allreduce.affine"},
      {R"({"ranks": 2, "costs": {"everything": {"table": [[1, 1]]}}})", "c.json.costs.everything"},
  };
  for (const auto& [json, begins] : all)
    EXPECT_EQ(cluster_refusal(json).find(begins), 0U) << begins << " in: " << cluster_refusal(json);
  for (const std::string misspelt :
       {R"("ranks_per_hots": 2, "links": {"inter": {"alpha_s": 1, "beta_s_per_byte": 1}}})",
        R"("links": {"inter": {"alpha_s": 1, "beta_s_per_byte": 1, "gama_s_per_byte": 1}}})",
        R"("algoritm": "ring", "links": {"inter": {"alpha_s": 1, "beta_s_per_byte": 1}}})"})
    test::expect_words(cluster_refusal(R"({"ranks": 2, )" + misspelt), {"did you mean"});
  const std::string noted = cost(R"({"affine": {"a_s": 1, "b_s_per_byte": 1}})").insert(1, R"("note": "mine", )");
  EXPECT_EQ(cluster_refusal(noted), "no error") << "notes of the writer's stay";
}

Cluster cluster_of(const std::string& costs, const std::string& rest = "") {
  return parse_cluster(R"({"ranks": 4, )" + rest + R"("costs": {"allreduce": )" + costs + "}}", "c.json");
}

TEST(ClusterCost, IsWhatWasMeasuredBeforeWhatTheLinksSay) {
  const std::string links = R"("links": {"inter": {"alpha_s": 1, "beta_s_per_byte": 1}}, )";
  const Cluster cluster = cluster_of(R"({"affine": {"a_s": 0.5, "b_s_per_byte": 0.25}})", links);
  EXPECT_DOUBLE_EQ(simulate::costs::cost_of_cluster(cluster, 100)(8), 2.5);
  Cluster ring = cluster;
  ring.algorithm = "ring";
  EXPECT_NEAR(simulate::costs::cost_of_cluster(ring, 100)(8), 6 + 2 * 0.75 * 8, 1e-9)
      << "nothing was measured for it: links";
}

TEST(ClusterCost, OfAutoIsTheLeastOfTheAlgorithmsMeasured) {
  const Cluster cluster = cluster_of(R"({"ring": {"affine": {"a_s": 10, "b_s_per_byte": 1}},
                                         "mst": {"table": [[0, 1], [10, 31]]}})");
  const schedule::Cost cost = simulate::costs::cost_of_cluster(cluster, 100);
  EXPECT_NEAR(cost(0), 1, 1e-9);
  EXPECT_NEAR(cost(2), 7, 1e-3);
  EXPECT_NEAR(cost(50), 60, 1e-2);
  Cluster mst = cluster;
  mst.algorithm = "mst";
  EXPECT_DOUBLE_EQ(simulate::costs::cost_of_cluster(mst, 100)(50), 151);
  mst.algorithm = "recursive_doubling";
  EXPECT_THROW(static_cast<void>(simulate::costs::cost_of_cluster(mst, 100)), Misuse);
}

TEST(ClusterCost, InsideOneHostIsThatOfItsLinks) {
  Cluster cluster{
      .ranks = 4, .ranks_per_host = 4, .inter = LinkCost{1, 1, 0}, .intra = LinkCost{0.1, 0.1, 0}, .algorithm = "ring"};
  EXPECT_NEAR(simulate::costs::cost_of_cluster(cluster, 100)(4), 0.6 + 0.6, 1e-9);
  cluster.ranks_per_host = 2;
  EXPECT_NEAR(simulate::costs::cost_of_cluster(cluster, 100)(4), 6 + 6, 1e-9);
}

TEST(ClusterCost, ChangesByTheStartupOrByTheByte) {
  const Cluster measured = cluster_of(R"({"table": [[0, 2], [10, 4], [20, 10]]})");
  EXPECT_DOUBLE_EQ(simulate::costs::cost_of_cluster(measured, 100, {.startup = 0.5})(20), 9);
  EXPECT_DOUBLE_EQ(simulate::costs::cost_of_cluster(measured, 100, {.per_byte = 0.5})(20), 6);
  EXPECT_DOUBLE_EQ(simulate::costs::cost_of_cluster(measured, 100, {.per_byte = 0.5})(5), 2.5);
  const Cluster links{.ranks = 2, .inter = LinkCost{1, 1, 0}, .algorithm = "ring"};
  EXPECT_NEAR(simulate::costs::cost_of_cluster(links, 100, {.startup = 0.5})(4), 1 + 4, 1e-9);
  EXPECT_NEAR(simulate::costs::cost_of_cluster(links, 100, {.per_byte = 0.5})(4), 2 + 2, 1e-9);
}

TEST(ClusterCost, OfAnotherNumberOfRanksGoesByTheLinks) {
  const Cluster cluster = parse_cluster(
      R"({"ranks": 4, "algorithm": "ring", "cpu_s_per_byte": 0.25, "links": {"inter": {"alpha_s": 1, "beta_s_per_byte": 1}},
          "costs": {"allreduce": {"ring": {"affine": {"a_s": 50, "b_s_per_byte": 2}}}}})",
      "c.json");
  const ExchangeCost measured = exchange_cost(cluster, 4, 1000);
  EXPECT_EQ(measured.table, (std::vector<std::pair<double, double>>{{0, 50}, {1000, 2050}}));
  EXPECT_EQ(measured.cpu_s_per_byte, 0.25);
  const ExchangeCost links = exchange_cost(cluster, 2, 1000);
  EXPECT_DOUBLE_EQ(links.table.front().second, 2) << "2 (N - 1) alpha";
  Cluster without_links = cluster;
  without_links.inter.reset();
  EXPECT_THROW(static_cast<void>(exchange_cost(without_links, 2, 1000)), Misuse);
}

TEST(PublishedData, IsReadable) {
  int profiles = 0, clusters = 0;
  for (const auto& file : std::filesystem::directory_iterator(DATA_FOLDER "/profile")) {
    EXPECT_GE(read_profile(file.path()).layers.size(), 3U) << file.path();
    ++profiles;
  }
  for (const auto& file : std::filesystem::directory_iterator(DATA_FOLDER "/cluster")) {
    EXPECT_GT(read_cluster(file.path()).ranks, 1) << file.path();
    ++clusters;
  }
  EXPECT_GE(profiles, 2);
  EXPECT_GE(clusters, 4);
}

}  // namespace
}  // namespace syncopate
