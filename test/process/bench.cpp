// `syncopate bench` and `syncopate plan collective` as a user meets them: rows, answers, exit codes.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "process/run_program.hpp"

namespace syncopate::test {
namespace {

std::vector<nlohmann::json> rows_of(const Ended& ended) {
  std::vector<nlohmann::json> rows;
  for (const std::string& line : lines_of(ended.output)) rows.push_back(nlohmann::json::parse(line, nullptr, false));
  return rows;
}

std::vector<std::string> bench(const std::string& collective, const std::vector<std::string>& more) {
  std::vector<std::string> words{"bench", collective, "--json", "--rounds", "2", "--budget", "0.05"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void expect_complete(const nlohmann::json& row) {
  for (const char* key : {"collective", "algorithm", "contender", "transport", "memory", "ranks", "bytes", "dtype",
                          "correct", "seconds", "bound_seconds", "ratio", "cpu_seconds"})
    EXPECT_TRUE(row.contains(key)) << key;
  for (const char* key : {"median", "min", "max", "n"}) EXPECT_TRUE(row.at("seconds").contains(key)) << key;
  EXPECT_EQ(row.at("correct"), true);
  EXPECT_EQ(row.at("contender"), "syncopate");
}

class BenchOver : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Transport, BenchOver, testing::Values("tcp", "shm"),
                         [](const auto& one) { return one.param; });

TEST_P(BenchOver, MeasuresEachCollective) {
  for (const char* collective :
       {"allreduce", "reduce_scatter", "allgather", "broadcast", "reduce", "gather", "scatter"}) {
    const Ended ended =
        syncopate(bench(collective, {"--ranks", "3", "--bytes", "4,1000", "--root", "2", "--transport", GetParam()}));
    ASSERT_EQ(ended.code, 0) << ended.error;
    const auto rows = rows_of(ended);
    const std::size_t memories = GetParam() == std::string("shm") ? 2 : 1;  // the group's and the program's own
    ASSERT_EQ(rows.size(), 2 * memories) << ended.output;
    for (const auto& row : rows) expect_complete(row);
    EXPECT_EQ(rows.front().at("collective"), collective);
    EXPECT_EQ(rows.front().at("memory"), memories == 2 ? "group" : "own");
    EXPECT_EQ(rows.back().at("memory"), "own");
    EXPECT_EQ(rows.back().at("bytes"), 1000);
    EXPECT_EQ(rows.back().at("transport"), GetParam());
    EXPECT_TRUE(rows.back().at("ratio").is_null());
  }
}

TEST_P(BenchOver, MeasuresEveryAlgorithmOfACollectiveAndAuto) {
  for (const char* collective : {"alltoall", "barrier"}) {
    const Ended ended = syncopate(
        bench(collective, {"--ranks", "3", "--bytes", "1200", "--algorithm", "auto,all", "--transport", GetParam()}));
    ASSERT_EQ(ended.code, 0) << ended.error;
    const auto rows = rows_of(ended);
    ASSERT_GE(rows.size(), 2u) << ended.output;
    for (const auto& row : rows) expect_complete(row);
    EXPECT_EQ(rows[0].at("algorithm"), "auto");
  }
}

TEST(Bench, MeasuresPipelinesWithEachNumberOfBlocks) {
  const std::vector<std::string> place{"--ranks", "3", "--transport", "inproc", "--memory", "own", "--bytes", "4000"};
  const auto with = [&](const std::string& algorithms, const std::string& blocks) {
    std::vector<std::string> words = place;
    words.insert(words.end(), {"--algorithm", algorithms, "--blocks", blocks});
    return syncopate(bench("broadcast", words));
  };
  const Ended ended = with("linear_pipeline,mst", "0,2,64");
  ASSERT_EQ(ended.code, 0) << ended.error;
  std::vector<std::string> algorithms;
  for (const auto& row : rows_of(ended)) {
    expect_complete(row);
    algorithms.push_back(row.at("algorithm"));
  }
  EXPECT_EQ(algorithms,
            (std::vector<std::string>{"linear_pipeline", "linear_pipeline:2", "linear_pipeline:64", "mst"}));
  expect_misuse(with("mst", "2"), {"none of the algorithms mst has blocks"});
  EXPECT_EQ(with("linear_pipeline", "65537").code, 2);
}

TEST(Bench, MeasuresTheProduct) {
  for (const char* dtype : {"f32", "bf16", "u8"}) {
    const Ended ended = syncopate(bench("allreduce", {"--ranks", "5", "--transport", "inproc", "--memory", "own",
                                                      "--bytes", "4000", "--dtype", dtype, "--op", "product"}));
    ASSERT_EQ(ended.code, 0) << ended.error;
    expect_complete(rows_of(ended).at(0));
  }
}

TEST(Bench, RefusesAnAllToAllWithoutEqualParts) {
  const Ended ended = syncopate(bench("alltoall", {"--ranks", "3", "--bytes", "1000"}));
  expect_misuse(ended, {"multiples of 12 bytes"});
}

TEST(Bench, MeasuresWhatTheLibraryWouldTakeAndTellsIt) {
  const Ended ended = syncopate(bench("barrier", {"--ranks", "2"}));
  ASSERT_EQ(ended.code, 0) << ended.error;
  EXPECT_EQ(rows_of(ended).at(0).at("transport"), "shm");
}

TEST(Bench, MeasuresEveryTypeInThreads) {
  for (const char* dtype : {"f32", "f64", "f16", "bf16", "i32", "i64", "u8"}) {
    const Ended ended = syncopate(bench("allreduce", {"--transport", "inproc", "--ranks", "3", "--bytes", "1000",
                                                      "--dtype", dtype, "--rate", "1gbit"}));
    ASSERT_EQ(ended.code, 0) << ended.error;
    const auto rows = rows_of(ended);
    ASSERT_EQ(rows.size(), 1u);
    expect_complete(rows[0]);
    EXPECT_EQ(rows[0].at("dtype"), dtype);
    EXPECT_GT(rows[0].at("ratio").get<double>(), 0);
  }
}

TEST(Bench, InsideAJobUsesItsRanks) {
  const Ended ended = syncopate({"run", "-n", "2", "--", SYNCOPATE_PROGRAM, "bench", "allreduce", "--json", "--rounds",
                                 "2", "--budget", "0.05", "--bytes", "1000"});
  ASSERT_EQ(ended.code, 0) << ended.error;
  const auto rows = rows_of(ended);
  ASSERT_EQ(rows.size(), 1u) << ended.output;
  expect_complete(rows[0]);
  EXPECT_EQ(rows[0].at("ranks"), 2);
}

TEST(Bench, WhereOneRankMayNotHaveTheAddressesAllRanksCopy) {
  const std::string bench = SYNCOPATE_PROGRAM + std::string(" bench allreduce --json --rounds 1 --budget 0.05");
  const Ended ended = syncopate(
      run_script(2, "[ $SYNCOPATE_RANK = 0 ] || ulimit -v 4000000; exec " + bench + " --memory group --bytes 4,1MiB"));
  ASSERT_EQ(ended.code, 0) << ended.error;
  EXPECT_EQ(rows_of(ended).size(), 2U) << ended.output;
}

TEST(Bench, RefusesWhatItCannotMeasure) {
  const std::vector<std::vector<std::string>> requests{
      bench("allreduce", {"--bytes", "5"}),
      bench("allreduce", {"--bytes", ""}),
      bench("allreduce", {"--algorithm", "nonsense"}),
      bench("allreduce", {"--contenders", "nonsense"}),
      bench("allreduce", {"--ranks", "0x"}),
      bench("allreduce", {"--ranks", "-1"}),
      bench("broadcast", {"--root", "4"}),
      bench("allreduce", {"--transport", "pigeon"}),
      bench("allreduce", {"--transport", "inproc", "--lab", "1gbit"}),
      bench("allreduce", {"--transport", "shm", "--lab", "1gbit"}),
      bench("allreduce", {"--ranks", "4", "--ranks-per-host", "2"}),
      bench("allreduce", {"--ranks", "3", "--ranks-per-host", "2", "--lab", "1gbit"}),
      bench("allreduce", {"--ranks", "4", "--ranks-per-host", "0", "--lab", "1gbit"}),
      bench("reduce_scatter", {"--contenders", "gloo"}),
      bench("nonsense", {}),
  };
  for (const auto& request : requests) {
    const Ended ended = syncopate(request);
    EXPECT_EQ(ended.code, 2) << ended.output;
    const auto rows = rows_of(ended);
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0].at("kind"), "Misuse");
  }
}

TEST(Bench, ShowsATableToPeople) {
  const Ended ended = syncopate({"bench", "allreduce", "--transport", "inproc", "--ranks", "2", "--bytes", "1000",
                                 "--rounds", "1", "--budget", "0.05"});
  ASSERT_EQ(ended.code, 0) << ended.error;
  expect_words(ended.output, {"median (min .. max)", "2 ranks over inproc"});
  EXPECT_EQ(ended.error, "");
}

TEST(BenchCodec, HasARowForEveryCodecOfTheShelfAndTheContendersOfTopk) {
  const Ended ended = syncopate({"bench", "codec", "--json", "--elements", "10K", "--rounds", "2"});
  ASSERT_EQ(ended.code, 0) << ended.error;
  std::vector<std::string> ours;
  const auto rows = rows_of(ended);
  for (const auto& row : rows) {
    for (const char* key : {"codec", "contender", "elements", "density", "encode_seconds", "decode_seconds",
                            "read_seconds", "wire_bytes", "index_bytes", "selected", "reads", "error"})
      EXPECT_TRUE(row.contains(key)) << key;
    EXPECT_EQ(row.at("elements"), 10'000);
    EXPECT_EQ(row.at("encode_seconds").at("n"), 2);
    if (row.at("contender") == "syncopate") ours.push_back(row.at("codec"));
  }
  for (const char* codec : {"none", "fp16", "topk:0.001", "topk:0.01"})
    EXPECT_NE(std::ranges::find(ours, codec), ours.end()) << codec;
  EXPECT_EQ(std::ranges::count(rows, "nth_element", [](const auto& row) { return row.at("contender"); }), 2);
}

TEST(BenchCodec, CountsIndicesAndKeepsResidualsOnRequest) {
  const Ended ended = syncopate({"bench", "codec", "--json", "--elements", "10K", "--rounds", "2", "--codec",
                                 "topk:0.05", "--contenders", "ours", "--feedback", "residual"});
  ASSERT_EQ(ended.code, 0) << ended.error;
  const auto rows = rows_of(ended);
  ASSERT_EQ(rows.size(), 1U) << ended.output;
  EXPECT_EQ(rows[0].at("density"), 0.05);
  EXPECT_EQ(rows[0].at("selected"), 500);
  EXPECT_EQ(rows[0].at("wire_bytes").get<int>() - rows[0].at("index_bytes").get<int>(), 4 * 500);
  EXPECT_LT(rows[0].at("error").get<double>(), 1);
}

using Refused = std::pair<std::vector<std::string>, std::string>;  // words, and what the error has

void expect_refused(const std::vector<std::string>& command, const std::vector<Refused>& all) {
  for (const auto& [words, why] : all) {
    std::vector<std::string> request = command;
    request.insert(request.end(), words.begin(), words.end());
    expect_misuse(syncopate(request), {why});
  }
}

TEST(BenchCodec, NamesWhatIsWrong) {
  expect_refused({"bench", "codec", "--rounds", "1"},
                 {
                     {{"--codec", "tpok"}, "did you mean 'topk'"},
                     {{"--codec", "topk:0.1,0.2"}, "topk:0.1,0.2"},
                     {{"--codec", ","}, "nothing to measure"},
                     {{"--codec", "fp16", "--feedback", "residual"}, "feedback residual with codec fp16"},
                     {{"--feedback", "momentum"}, "allowed: none, residual"},
                     {{"--contenders", "sort"}, "allowed: all, syncopate, nth_element"},
                     {{"--elements", "0"}, "--elements 0"},
                     {{"--elements", "16MiB"}, "'16MiB'"},
                 });
}

TEST(BenchStep, NamesWhatIsWrong) {
  expect_refused(
      {"bench", "step"},
      {
          {{"--codec", "fp16"}, "what to train is missing"},
          {{"--codec", "fp16", "--", "--model", "linear", "--codec=none"}, "compares --codec; allowed: before the --"},
          {{"--codec", ",", "--", "--model", "linear"}, "--codec names none"},
          {{"--policy", ",", "--", "--model", "linear"}, "--policy names none"},
          {{"--ranks-per-host", "2", "--", "--model", "linear"}, "--ranks-per-host is for --lab"},
      });
}

TEST(BenchExchange, NamesWhatIsWrong) {
  expect_refused({"bench", "exchange"},
                 {
                     {{}, "--lab is required"},
                     {{"--lab", "none"}, "allowed: a rate"},
                     {{"--lab", "1gbit", "--density", "2"}, "--density '2'"},
                     {{"--lab", "1gbit", "--density", ","}, "--density names none"},
                     {{"--lab", "1gbit", "--codec", "int8"}, "codec 'int8' is unknown"},
                     {{"--lab", "1gbit", "--algorithm", "rings"}, "did you mean 'ring'?"},
                     {{"--lab", "1gbit", "--elements", "3"}, "--elements 3"},
                     {{"--lab", "1gbit", "--hosts", "1"}, "allowed: 2 to 64"},
                     {{"--lab", "1gbit", "--hosts", "64", "--ranks-per-host", "64"}, "at most 128 ranks"},
                 });
}

TEST(PlanCollective, PricesARing) {
  const Ended ended =
      syncopate({"plan", "collective", "ring", "--ranks", "4", "--bytes", "4000", "--json", "--alpha", "1"});
  ASSERT_EQ(ended.code, 0) << ended.error;
  const auto row = rows_of(ended).at(0);
  EXPECT_EQ(row.at("algorithm"), "ring");
  EXPECT_EQ(row.at("collective"), "allreduce");
  EXPECT_EQ(row.at("ranks"), 4);
  EXPECT_EQ(row.at("bytes"), 4000);
  EXPECT_EQ(row.at("rounds"), 6);
  EXPECT_EQ(row.at("wire_bytes_per_rank"), 6000);
  EXPECT_NEAR(row.at("predicted_s").get<double>(), 6, 0.01);
}

TEST(PlanCollective, DrawsARowPerRank) {
  const Ended ended = syncopate({"plan", "collective", "mst", "--collective", "broadcast", "--ranks", "5", "--draw"});
  ASSERT_EQ(ended.code, 0) << ended.error;
  for (const char* rank : {"rank 0", "rank 4"}) EXPECT_NE(ended.output.find(rank), std::string::npos);
}

TEST(PlanCollective, RefusesWhatDoesNotExist) {
  EXPECT_EQ(syncopate({"plan", "collective", "nonsense"}).code, 2);
  EXPECT_EQ(syncopate({"plan", "collective", "ring", "--collective", "broadcast"}).code, 2);
  EXPECT_EQ(syncopate({"plan", "collective", "ring", "--ranks", "0"}).code, 2);
  EXPECT_EQ(syncopate({"plan"}).code, 2);
}

TEST(BenchServer, ChecksItsAnswersBesideABareStream) {
  const Ended ended = syncopate({"bench", "server", "--json", "--workers", "2", "--servers", "2", "--bytes", "3000012",
                                 "--tables", "3", "--rounds", "2", "--steps", "2"});
  if (ended.code == 2 && ended.error.find("needs SYNCOPATE_BENCHMARKS=ON") != std::string::npos)
    GTEST_SKIP() << ended.error;
  ASSERT_EQ(ended.code, 0) << ended.error;
  const bool has_stream = ended.error.find("without contender grpc") == std::string::npos;
  const auto rows = rows_of(ended);
  ASSERT_EQ(rows.size(), has_stream ? 2U : 1U) << ended.output << ended.error;
  EXPECT_EQ(rows[0].at("contender"), "syncopate");
  EXPECT_EQ(rows.back().at("contender"), has_stream ? "grpc" : "syncopate");
  for (const auto& row : rows) {
    EXPECT_EQ(row.at("correct"), true);
    EXPECT_EQ(row.at("workers"), 2);
    EXPECT_EQ(row.at("servers"), 2);
    EXPECT_EQ(row.at("bytes"), 3'000'012);
    EXPECT_EQ(row.at("push_pull_seconds").at("n"), 4);
    EXPECT_GT(row.at("cpu_seconds"), 0);
    EXPECT_TRUE(row.at("bound_seconds").is_null());
  }
  if (!has_stream) GTEST_SKIP() << "the bare stream was not compared: " << ended.error;
}

}  // namespace
}  // namespace syncopate::test
