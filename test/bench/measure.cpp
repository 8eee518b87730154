// The block method and what is made of its rows: counts, bounds, medians, and wrong answers that stay wrong.
#include "contender/measure.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "bench/agent.hpp"
#include "bench/rows.hpp"
#include "syncopate/error.hpp"

namespace {

using contender::Call;
using contender::Job;
using syncopate::tools::bench::Rows;
using syncopate::tools::bench::Series;

Job job_for(const std::vector<std::size_t>& bytes) {
  Job job;
  job.contender = "tested";
  job.transport = "none";
  job.bytes = bytes;
  job.budget_s = 0.003;
  return job;
}

contender::Ties no_ties() {
  return {.barrier = [] {}, .maximum = [](std::vector<double>&) {}, .sum = [](std::vector<double>&) {}};
}

/// One rank alone: an all-reduce leaves its data as it is.
std::vector<std::string> rows_of(const Job& job, const std::function<void(std::span<float>, long)>& work) {
  std::vector<std::string> rows;
  long calls = 0;
  contender::measure<float>(
      job, no_ties(),
      [&](const std::string&, std::span<float> data) {
        return Call{[&work, &calls, data] { work(data, ++calls); }, {0, 0, data.size()}};
      },
      [&](const std::string& row) { rows.push_back(row); });
  return rows;
}

TEST(BlockMethod, GivesOneRowPerSizeAndAlgorithm) {
  Job job = job_for({4, 64, 1024});
  job.algorithms = {"one", "other"};
  const auto rows = rows_of(job, [](std::span<float>, long) {});
  ASSERT_EQ(rows.size(), 6u);
  const auto row = nlohmann::json::parse(rows[3]);
  EXPECT_EQ(row.at("algorithm"), "other");
  EXPECT_EQ(row.at("bytes"), 64);
  EXPECT_EQ(row.at("correct"), true);
  EXPECT_EQ(row.at("block_seconds").size(), row.at("block_cpu_seconds").size());
  EXPECT_GE(row.at("block_seconds").size(), 2u);
}

TEST(BlockMethod, SaysSoWhenTheFirstAnswerIsWrong) {
  const auto rows = rows_of(job_for({64}), [](std::span<float> data, long call) {
    if (call == 1) data[15] += 1;
  });
  EXPECT_EQ(nlohmann::json::parse(rows[0]).at("correct"), false);
}

TEST(BlockMethod, SaysSoWhenOnlyLaterAnswersAreWrong) {
  const auto rows = rows_of(job_for({64}), [](std::span<float> data, long call) {
    if (call > 1) data[0] += 1;
  });
  EXPECT_EQ(nlohmann::json::parse(rows[0]).at("correct"), false);
}

TEST(BlockMethod, SeesABarrierThatDoesNotWait) {
  Job job = job_for({4});
  job.collective = "barrier";
  const auto correct_if_others_come = [&](double seconds_later) {
    contender::Ties ties = no_ties();
    ties.maximum = [&](std::vector<double>& values) {
      if (values.size() == 2 && values[0] != contender::machine()) values[0] += seconds_later;
    };
    std::string row;
    contender::measure<float>(
        job, ties,
        [](const std::string&, std::span<float>) {
          return Call{[] {}, {}};
        },
        [&](const std::string& line) { row = line; });
    return nlohmann::json::parse(row).at("correct").get<bool>();
  };
  EXPECT_TRUE(correct_if_others_come(0));
  EXPECT_FALSE(correct_if_others_come(60)) << "this rank left long before";
}

TEST(BlockMethod, LooksAtTheSecondVectorOfAnAllToAll) {
  Job job = job_for({64});
  job.collective = "alltoall";
  const auto correct = [&](float error) {
    std::string row;
    contender::measure<float>(
        job, no_ties(),
        [&](const std::string&, std::span<float> data) {
          const auto out = std::make_shared<std::vector<float>>(data.size());
          return Call{[=] {
                        std::copy(data.begin(), data.end(), out->begin());
                        out->back() += error;
                      },
                      {0, 0, data.size()},
                      out->data()};
        },
        [&](const std::string& line) { row = line; });
    return nlohmann::json::parse(row).at("correct").get<bool>();
  };
  EXPECT_TRUE(correct(0));
  EXPECT_FALSE(correct(1));
}

TEST(BlockMethod, ReadsItsJobFromArguments) {
  const char* words[] = {"collective=reduce", "algorithms=a,b", "bytes=4,1024", "op=max", "root=2",
                         "budget=0.25",       "rank=1",         "size=3"};
  const Job job = contender::job_of(contender::arguments(8, words));
  EXPECT_EQ(job.collective, "reduce");
  EXPECT_EQ(job.algorithms, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(job.bytes, (std::vector<std::size_t>{4, 1024}));
  EXPECT_EQ(job.op, "max");
  EXPECT_EQ(job.root, 2);
  EXPECT_EQ(job.budget_s, 0.25);
  EXPECT_EQ(job.rank, 1);
  EXPECT_EQ(job.size, 3);
  const char* wrong[] = {"collective"};
  EXPECT_THROW((void)contender::arguments(1, wrong), std::runtime_error);
}

std::string raw(const std::string& contender, const char* seconds, bool correct) {
  return R"({"collective":"allreduce","algorithm":"ring","contender":")" + contender +
         R"(","transport":"tcp","memory":"own","ranks":4,"bytes":1000000,"dtype":"f32","calls":3,"block_seconds":[)" +
         seconds + R"(],"block_cpu_seconds":[)" + seconds + R"(],"correct":)" + (correct ? "true}" : "false}");
}

TEST(Rows, MergeTheBlocksOfAllRounds) {
  Rows rows(1e9);
  EXPECT_TRUE(rows.add(raw("syncopate", "0.012,0.018", true)));
  EXPECT_TRUE(rows.add(raw("gloo", "0.5", true)));
  EXPECT_TRUE(rows.add(raw("syncopate", "0.030", true)));
  const auto merged = rows.json();
  ASSERT_EQ(merged.size(), 2u);
  EXPECT_EQ(merged[0].at("contender"), "syncopate");
  EXPECT_EQ(merged[0].at("seconds"), (nlohmann::json{{"median", 0.018}, {"min", 0.012}, {"max", 0.030}, {"n", 3}}));
  EXPECT_DOUBLE_EQ(merged[0].at("bound_seconds"), 2 * 3.0 / 4 * 1e6 * 8 / 1e9);
  EXPECT_DOUBLE_EQ(merged[0].at("ratio"), 1.5);
  EXPECT_DOUBLE_EQ(merged[0].at("cpu_seconds"), 0.018);
  EXPECT_TRUE(rows.all_correct());
}

TEST(Rows, AreWrongForGoodOnceOneRoundWas) {
  Rows rows(0);
  rows.add(raw("syncopate", "1", false));
  rows.add(raw("syncopate", "1", true));
  EXPECT_FALSE(rows.all_correct());
  EXPECT_EQ(rows.json()[0].at("correct"), false);
  EXPECT_NE(rows.table().find("WRONG"), std::string::npos);
}

TEST(Rows, HaveNoBoundWithoutARate) {
  Rows rows(0);
  rows.add(raw("syncopate", "1", true));
  EXPECT_TRUE(rows.json()[0].at("bound_seconds").is_null());
  EXPECT_TRUE(rows.json()[0].at("ratio").is_null());
}

TEST(Rows, LeaveOtherLinesAlone) {
  Rows rows(0);
  EXPECT_FALSE(rows.add("hello"));
  EXPECT_FALSE(rows.add("{\"rank\":1}"));
  EXPECT_FALSE(rows.add("[1]"));
  EXPECT_TRUE(rows.empty());
}

TEST(Rows, RefuseARawRowThatIsDamaged) {
  Rows rows(0);
  const std::string whole = raw("syncopate", "1", true);
  for (const auto& [part, damage] : {std::pair{"\"memory\":\"own\",", ""}, std::pair{"\"ranks\":4", "\"ranks\":\"4\""},
                                     std::pair{"\"bytes\":1000000", "\"bytes\":1e300"},
                                     std::pair{"\"block_seconds\":[1]", "\"block_seconds\":[]"}}) {
    std::string damaged = whole;
    damaged.replace(damaged.find(part), std::strlen(part), damage);
    EXPECT_THROW(rows.add(damaged), syncopate::Corrupt) << damaged;
  }
  EXPECT_TRUE(rows.empty());
}

TEST(Rows, KnowTheBoundOfEachCollective) {
  const auto bound = [](const char* collective, int ranks, int ranks_per_host = 1) {
    Series series{.collective = collective, .algorithm = {}, .contender = {}, .transport = {}, .dtype = {}};
    series.ranks = ranks;
    series.ranks_per_host = ranks_per_host;
    series.bytes = 1'000'000;
    return syncopate::tools::bench::bound_seconds(series, 8e6);  // a megabyte a second
  };
  EXPECT_DOUBLE_EQ(bound("allreduce", 4), 1.5);
  EXPECT_DOUBLE_EQ(bound("reduce_scatter", 4), 0.75);
  EXPECT_DOUBLE_EQ(bound("allgather", 4), 0.75);
  EXPECT_DOUBLE_EQ(bound("broadcast", 4), 1);
  EXPECT_DOUBLE_EQ(bound("reduce", 4), 1);
  for (const char* collective : {"gather", "scatter", "alltoall"}) EXPECT_DOUBLE_EQ(bound(collective, 4), 0.75);
  EXPECT_DOUBLE_EQ(bound("barrier", 4), 0);
  EXPECT_DOUBLE_EQ(bound("allreduce", 1), 0);
  EXPECT_DOUBLE_EQ(bound("allreduce", 4, 2), 1) << "each byte leaves a host once and enters it once";
  EXPECT_DOUBLE_EQ(bound("allgather", 4, 2), 0.5);
  EXPECT_DOUBLE_EQ(bound("alltoall", 4, 2), 1) << "both ranks of a host send half of theirs";
  EXPECT_DOUBLE_EQ(bound("allreduce", 4, 4), 0);
}

TEST(Agent, RunsAShellCommandOnTheNamedHost) {
  char folder[] = "/tmp/syncopate-agent-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/agent", output = std::string(folder) + "/output";
  syncopate::tools::bench::write_agent(path, {{"10.0.0.1", {"env", "WHO=it's one"}}, {"10.0.0.2", {"env", "WHO=two"}}});
  const auto run = [&](const std::string& words) {
    const int status = std::system((path + " " + words + " >" + output + " 2>/dev/null").c_str());
    std::string text;
    std::getline(std::ifstream(output), text);
    return std::pair(status == 0, text);
  };
  EXPECT_EQ(run("-x -l me 10.0.0.1 'echo $WHO;' true"), std::pair(true, std::string("it's one")));
  EXPECT_EQ(run("10.0.0.2 echo '$WHO'"), std::pair(true, std::string("two")));
  EXPECT_FALSE(run("10.0.0.3 true").first);
  std::filesystem::remove_all(folder);
}

}  // namespace
