// `syncopate fit` and `syncopate figure` as a user meets them: the files they write, and what they refuse.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "process/run_program.hpp"

namespace syncopate::test {
namespace {

TEST(Fit, WritesAClusterFileWithLinksAndATablePerAlgorithm) {
  const TemporaryFolder folder;
  const std::string file = folder / "cluster.json";
  const Ended ended = syncopate({"fit", "--json", "-n", "2", "--bytes", "64,4KiB", "--budget", "0.01", "--limit", "2",
                                 "--transport", "tcp", "-o", file});
  ASSERT_EQ(ended.code, 0) << ended.error;
  const auto cluster = nlohmann::json::parse(file_text(file));
  EXPECT_EQ(cluster.at("ranks"), 2);
  for (const char* key : {"alpha_s", "beta_s_per_byte", "gamma_s_per_byte"})
    EXPECT_GE(cluster.at("links").at("intra").at(key).get<double>(), 0) << key;
  EXPECT_EQ(cluster.at("ranks_per_host"), 2);
  EXPECT_EQ(cluster.at("transport"), "tcp");
  EXPECT_EQ(cluster.at("memory"), "own");
  EXPECT_GT(cluster.at("cpu_s_per_byte").get<double>(), 0);
  const auto& table = cluster.at("costs").at("allreduce").at("ring").at("table");
  ASSERT_EQ(table.size(), 2U);
  EXPECT_EQ(table[0][0], 64);
  EXPECT_GT(table[1][1].get<double>(), 0);
  for (const char* collective :
       {"broadcast", "reduce", "allgather", "reduce_scatter", "gather", "scatter", "alltoall", "barrier"})
    EXPECT_TRUE(cluster.at("costs").contains(collective)) << collective;
  EXPECT_EQ(cluster.at("costs").at("barrier").at("mst").at("table")[0][0], 4);
}

TEST(Fit, MeasuresWhatTheGroupAndThePlannerDecideBy) {
  const TemporaryFolder folder;
  const std::string file = folder / "cluster.json";
  ASSERT_EQ(syncopate({"fit", "-n", "2", "--bytes", "64,4KiB", "--budget", "0.01", "--limit", "2", "-o", file}).code,
            0);
  const Ended plan = syncopate({"plan", "collective", "auto", "--bytes", "4KiB", "--cluster", file, "--json"});
  ASSERT_EQ(plan.code, 0) << plan.error;
  const auto row = nlohmann::json::parse(plan.output);
  EXPECT_EQ(row.at("ranks"), 2) << "the cluster's";
  double least = 1e9;
  for (const auto& entry : row.at("alternatives")) least = std::min(least, entry.value("measured_s", 1e9));
  EXPECT_EQ(row.at("alternatives")[0].at("measured_s"), least);
  EXPECT_EQ(row.at("algorithm"), row.at("alternatives")[0].at("algorithm"));
  EXPECT_EQ(nlohmann::json::parse(file_text(file)).at("memory"), "group");
  ::setenv("SYNCOPATE_CLUSTER", file.c_str(), 1);
  const Ended bench = syncopate({"bench", "allreduce", "--ranks", "2", "--transport", "shm", "--json", "--budget",
                                 "0.02", "--rounds", "1", "--bytes", "4KiB"});
  ::setenv("SYNCOPATE_CLUSTER", "/nonexistent/c.json", 1);
  const Ended lost = syncopate({"bench", "allreduce", "--ranks", "2", "--bytes", "4KiB"});
  ::unsetenv("SYNCOPATE_CLUSTER");
  EXPECT_EQ(bench.code, 0) << bench.error;
  EXPECT_EQ(lost.code, 1);
  EXPECT_NE(lost.error.find("/nonexistent/c.json"), std::string::npos) << lost.error;
}

/// A hundred small sizes take longer than the limit on any machine; the least number of sizes takes less.
TEST(Fit, NamesTheSizesThatItsLimitLeftOutAndPlanSaysWhereItGoesBeyond) {
  const TemporaryFolder folder;
  const std::string file = folder / "cluster.json";
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t bytes = 8; bytes <= 800; bytes += 8) sizes.push_back(bytes);
  sizes.push_back(64 << 20);
  const Ended fit = syncopate({"fit", "--json", "-n", "2", "--bytes", fmt::format("{}", fmt::join(sizes, ",")),
                               "--budget", "0.02", "--limit", "1.25", "--transport", "tcp", "-o", file});
  ASSERT_EQ(fit.code, 0) << fit.error;
  const std::vector<std::uint64_t> left_out = nlohmann::json::parse(fit.output).at("left_out");
  ASSERT_FALSE(left_out.empty()) << fit.error;
  const std::size_t measured = sizes.size() - left_out.size();
  ASSERT_GE(measured, 2U);
  EXPECT_TRUE(std::equal(left_out.begin(), left_out.end(), sizes.begin() + static_cast<std::ptrdiff_t>(measured)));
  const std::string end = fmt::format("{} B", sizes[measured - 1]);
  expect_words(fit.error, {fmt::format("64 MiB {} not measured, because that would not have ended within --limit 1.25 "
                                       "seconds: the tables end at {},",
                                       left_out.size() == 1 ? "was" : "were", end)});
  const auto plan = [&](const std::string& bytes) {
    return syncopate({"plan", "collective", "auto", "--bytes", bytes, "--cluster", file}).error;
  };
  expect_words(plan("1MiB"), {"allreduce of 1 MiB exceeds the measured sizes: the timings end at " + end});
  EXPECT_EQ(plan("8").find("beyond"), std::string::npos);
}

TEST(Fit, SaysWhatItCannotWriteOrStart) {
  EXPECT_EQ(syncopate({"fit"}).code, 2);
  EXPECT_EQ(syncopate({"fit", "-n", "1", "-o", "x"}).code, 2);
  const Ended ended = syncopate(
      {"fit", "-n", "2", "--bytes", "64,256", "--budget", "0.01", "--limit", "1", "-o", "/nonexistent/c.json"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.error.find("/nonexistent/c.json"), std::string::npos) << ended.error;
}

TEST(Figure, DrawsTheRowsOfABenchmark) {
  const TemporaryFolder folder;
  const std::string rows = folder / "rows.jsonl", svg = folder / "figure.svg";
  const Ended measured = syncopate(
      {"bench", "allreduce", "--json", "--transport", "inproc", "--ranks", "2", "--rounds", "1", "--budget", "0.02"});
  ASSERT_EQ(measured.code, 0) << measured.error;
  std::ofstream(rows) << measured.output;
  const Ended drawn = syncopate({"figure", rows, "-o", svg});
  EXPECT_EQ(drawn.code, 0) << drawn.error;
  EXPECT_NE(file_text(svg).find("polyline"), std::string::npos);
}

TEST(Figure, NamesTheKeysThatRowsHaveWhereTheyLackWhatIsDrawn) {
  const TemporaryFolder folder;
  const std::string rows = folder / "rows.jsonl";
  std::ofstream(rows) << "{\"bytes\": 4, \"ratio\": 1}\n";
  expect_misuse(syncopate({"figure", rows, "-o", "/dev/null"}),
                {"\"bytes\" (--x) and \"seconds\" (--y); their keys: bytes, ratio"});
}

TEST(Figure, NamesFileAndLineOfWhatIsNoRow) {
  const TemporaryFolder folder;
  const std::string rows = folder / "damaged.jsonl";
  std::ofstream(rows) << "{\"bytes\": 4, \"seconds\": 1}\nnot a row\n";
  const Ended drawn = syncopate({"figure", rows, "-o", "/dev/null"});
  EXPECT_EQ(drawn.code, 1);
  EXPECT_NE(drawn.error.find("damaged.jsonl:2"), std::string::npos) << drawn.error;
}

}  // namespace
}  // namespace syncopate::test
