// `syncopate profile` from a layer table, as a user meets it: joined layers, times, errors that name the place.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "process/run_program.hpp"

namespace syncopate::test {
namespace {

class ProfileCommand : public testing::Test {
 protected:
  void write(const std::string& text) const { std::ofstream(table_) << text; }
  [[nodiscard]] Ended derive(std::vector<std::string> more = {}) const {
    more.insert(more.begin(),
                {"profile", "--table", table_, "--throughput-gflops", "2", "--batch", "10", "-o", profile_});
    return syncopate(more);
  }

  TemporaryFolder folder_;
  const std::string table_ = folder_ / "net.csv", profile_ = folder_ / "net.json";
};

TEST_F(ProfileCommand, DerivesTimesFromALayerTableAndAThroughput) {
  write("# a remark\nname,elements,flops,kind\nconv,27,1e6,w\nfc.weight,100,4e6,w\nfc.bias,10,0,b\n");
  const Ended ended = derive();
  ASSERT_EQ(ended.code, 0) << ended.error;
  const auto profile = nlohmann::json::parse(file_text(profile_));
  ASSERT_EQ(profile.at("layers").size(), 2U) << "weight and bias become ready together";
  EXPECT_EQ(profile["layers"][1]["name"], "fc");
  EXPECT_EQ(profile["layers"][1]["elements"], 110);
  EXPECT_NEAR(profile["forward_s"].get<double>(), 0.025, 1e-12);
  EXPECT_NEAR(profile["layers"][0]["backward_s"].get<double>(), 0.01, 1e-12);
  EXPECT_NEAR(profile["layers"][1]["backward_s"].get<double>(), 0.04, 1e-12);
}

TEST_F(ProfileCommand, WritesWhatPlanReads) {
  write("name,elements,flops\na,1000,1e7\nb,1000,1e7\n");
  ASSERT_EQ(derive({"--json"}).code, 0);
  const std::string cluster = folder_ / "cluster.json";
  std::ofstream(cluster) << R"({"ranks": 4, "links": {"inter": {"alpha_s": 1e-4, "beta_s_per_byte": 1e-9}}})";
  const Ended plan = syncopate({"plan", profile_, "--cluster", cluster, "--policy", "wfbp", "--json"});
  ASSERT_EQ(plan.code, 0) << plan.error;
  EXPECT_NEAR(nlohmann::json::parse(plan.output).at("compute_s").get<double>(), 0.3, 1e-9);
}

TEST_F(ProfileCommand, DerivesTimesOfAPublishedNetwork) {
  const Ended ended =
      syncopate({"profile", "--architecture", "vgg16", "--throughput-gflops", "1000", "--batch", "8", "-o", profile_});
  ASSERT_EQ(ended.code, 0) << ended.error;
  const auto profile = nlohmann::json::parse(file_text(profile_));
  EXPECT_EQ(profile.at("layers").size(), 16U);
  EXPECT_NEAR(profile["forward_s"].get<double>(), 8 * 31e9 / 1e12, 0.01);
}

TEST_F(ProfileCommand, NamesFileAndLineOfADamagedTable) {
  const std::pair<const char*, const char*> damages[] = {
      {"name,elements,flops\na,1000\n", "net.csv:2: 2 cells; the header has 3"},
      {"name,elements,flops\na,many,1\n", "net.csv:2: 'many' is not a number"},
      {"name,elements,flops\na,0,1\n", "net.csv:2: a layer without elements"},
      {"name,elements\na,1\n", "net.csv:1: no column \"flops\""},
      {"name,elements,flops\n", "net.csv: no layers"}};
  for (const auto& [text, message] : damages) {
    write(text);
    const Ended ended = derive();
    EXPECT_EQ(ended.code, 1) << text;
    EXPECT_NE(ended.error.find(message), std::string::npos) << ended.error;
  }
}

TEST_F(ProfileCommand, MisuseSaysWhatIsMissing) {
  EXPECT_EQ(syncopate({"profile", "--model", "mlp"}).code, 2) << "no -o";
  EXPECT_EQ(syncopate({"profile", "--table", table_, "-o", profile_}).code, 2) << "no throughput";
  EXPECT_EQ(
      syncopate({"profile", "--architecture", "vgg16", "--table", table_, "--throughput-gflops", "1", "-o", "x"}).code,
      2);
  EXPECT_EQ(syncopate({"profile", "--architecture", "vgg", "--throughput-gflops", "1", "-o", profile_}).code, 2);
  expect_misuse(derive(), {"net.csv"});
}

}  // namespace
}  // namespace syncopate::test
