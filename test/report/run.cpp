// Reading a run's folder: what is refused, and what is tolerated.
#include "report/record/run.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "report/record/summary.hpp"
#include "sample.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate::tools::report::record {
namespace {

/// The message of the `Kind` that reading throws; empty if it throws none.
template <class Kind>
std::string refusal(const SampleFolder& folder) {
  return test::thrown<Kind>([&] { return read_run(folder.path()); });
}

TEST(Run, ReadsWhatEveryRankWrote) {
  const SampleFolder folder(3);
  const auto run = read_run(folder.path());
  ASSERT_EQ(run.ranks.size(), 3u);
  for (const RankRecord& rank : run.ranks) {
    EXPECT_EQ(rank.steps.size(), 10u);
    EXPECT_EQ(rank.spans.size(), sample_spans().size());
    ASSERT_TRUE(rank.end);
    EXPECT_EQ(rank.end->digest, "feedbeef");
  }
  EXPECT_TRUE(summary_of(run).notes.empty());
}

TEST(Run, AFolderWithoutRunJsonIsMisuse) {
  const SampleFolder folder(1);
  folder.remove("run.json");
  EXPECT_TRUE(holds(refusal<Misuse>(folder), "is not a run"));
  EXPECT_THROW((void)read_run(folder.path() / "absent"), Misuse);
}

TEST(Run, AFolderThatCannotBeReadIsNamedWithTheReason) {
  namespace fs = std::filesystem;
  const SampleFolder folder(1);
  fs::permissions(folder.path(), fs::perms::none);
  const bool is_root = geteuid() == 0;
  if (is_root) ASSERT_EQ(seteuid(65534), 0);  // permissions do not apply to root
  EXPECT_EQ(refusal<SystemFailure>(folder),
            "cannot read " + (folder.path() / "run.json").string() + ": Permission denied");
  if (is_root) ASSERT_EQ(seteuid(0), 0);
  fs::permissions(folder.path(), fs::perms::owner_all);
}

TEST(Run, ADamagedRowIsNamedByFileAndLine) {
  const SampleFolder folder(1);
  folder.write("rank-0.jsonl", "{\"event\":\"step\",\"step\":1}\n{\"event\": oops}\n" + SampleFolder::rows(0));
  EXPECT_TRUE(holds(refusal<Corrupt>(folder), "rank-0.jsonl, line 2"));
}

TEST(Run, ReadsWhereTheSamplesCameFromAndRefusesWhatIsNoTier) {
  const SampleFolder folder(1);
  const std::string tier = R"({"records":3,"bytes":40,"seconds":0.5})";
  const auto end = [&](const std::string& peers) {
    return SampleFolder::steps() +
           fmt::format(
               R"({{"event":"end","input":[{{"epoch":2,"damaged":1,"memory":{0},"disk":{0},"origin":{0}{1}}}]}})"
               "\n",
               tier, peers);
  };
  folder.write("rank-0.jsonl", end(R"(,"peers":{"records":7,"bytes":9,"seconds":0})"));
  const std::vector<InputEpoch> input = read_run(folder.path()).ranks[0].end->input;
  ASSERT_EQ(input.size(), 1U);
  EXPECT_EQ(input[0].epoch, 2);
  EXPECT_EQ(input[0].peers.records, 7);
  EXPECT_EQ(input[0].origin.bytes, 40);
  EXPECT_EQ(input[0].damaged, 1);
  for (const char* wrong : {"", R"(,"peers":3)", R"(,"peers":{"records":-1,"bytes":9})"}) {
    folder.write("rank-0.jsonl", end(wrong));
    EXPECT_THROW((void)read_run(folder.path()), Corrupt) << wrong;
  }
}

TEST(Run, ReadsThePartsOfARecipeAndRefusesWhatIsNone) {
  const SampleFolder folder(1);
  const auto with = [&](const std::string& part) {
    nlohmann::json configuration = sample_configuration(1);
    configuration["parts"] = nlohmann::json::parse("[" + part + "]");
    folder.write("run.json", configuration.dump());
  };
  const std::string good = R"({"part":2,"first_epoch":3,"epochs":4,"batch":8,"codec":"fp16","exchange":"allreduce")";
  with(good + R"(,"resolution":96,"learning_rate":[0.5,0.25]},)" + good + "}");
  folder.write("rank-0.jsonl", R"({"event":"step","step":1,"part":2})"
                               "\n"
                               R"({"event":"step","step":2})"
                               "\n");
  const auto run = read_run(folder.path());
  ASSERT_EQ(run.parts.size(), 2U);
  EXPECT_EQ(run.parts[0].number, 2);
  EXPECT_EQ(run.parts[0].first_epoch, 3);
  EXPECT_EQ(run.parts[0].last_rate, 0.25);
  EXPECT_TRUE(std::isnan(run.parts[1].resolution) && std::isnan(run.parts[1].first_rate));
  EXPECT_EQ(run.ranks[0].steps[0].part, 2);
  EXPECT_TRUE(std::isnan(run.ranks[0].steps[1].part));
  for (const std::string& wrong : {std::string("3"), std::string(R"({"part":1})"), good + R"(,"learning_rate":[1]})",
                                   good + R"(,"learning_rate":["a","b"]})"}) {
    with(wrong);
    EXPECT_THROW((void)read_run(folder.path()), Corrupt) << wrong;
  }
}

TEST(Run, ARowOfTheWrongTypeIsNamedByFileAndLine) {
  const SampleFolder folder(1);
  folder.write("rank-0.jsonl", "{\"event\":\"step\",\"step\":1,\"loss\":\"low\"}\n");
  EXPECT_TRUE(holds(refusal<Corrupt>(folder), "rank-0.jsonl, line 1: \"loss\" must be a number"));
  folder.write("rank-0.jsonl", "{\"event\":\"step\",\"step\":-1}\n");
  EXPECT_TRUE(holds(refusal<Corrupt>(folder), "\"step\" must be a whole number"));
}

TEST(Run, ASpanThatEndsBeforeItBeginsIsLeftOutWithANote) {
  for (const char* times : {R"("begin_s":2,"end_s":1)", R"("begin_s":2)", R"("end_s":null)"}) {
    const SampleFolder folder(2);
    for (const char* track : {"wait", "planned"})
      folder.append("trace-1.jsonl", fmt::format("{{\"track\":\"{}\",\"name\":\"\",{}}}\n", track, times));
    const auto run = read_run(folder.path());
    EXPECT_EQ(run.ranks[1].spans.size(), sample_spans().size()) << times;
    EXPECT_TRUE(run.ranks[1].planned.empty()) << times;
    const Summary summary = summary_of(run);
    ASSERT_EQ(summary.notes.size(), 1u) << times;
    EXPECT_EQ(summary.notes[0], "The trace of rank 1 has spans that do not begin and then end; they are left out.");
  }
}

TEST(Run, ADamagedConfigurationIsNamed) {
  const SampleFolder folder(1);
  folder.write("run.json", "{\"ranks\": 1,\n \"layers\": [}");
  EXPECT_TRUE(holds(refusal<Corrupt>(folder), "run.json: parse error at line 2"));
  folder.write("run.json", "[]");
  EXPECT_TRUE(holds(refusal<Corrupt>(folder), "run.json"));
  for (const char* ranks : {"0", "-1", "1.5", "1e12", "\"four\"", "null"}) {
    folder.write("run.json", fmt::format("{{\"ranks\": {}}}", ranks));
    EXPECT_TRUE(holds(refusal<Corrupt>(folder), "\"ranks\"")) << ranks;
  }
}

TEST(Run, ABucketBeyondTheLayersIsRefused) {
  const SampleFolder folder(1);
  auto configuration = sample_configuration(1);
  configuration["buckets"][1]["last"] = 2;
  folder.write("run.json", configuration.dump());
  EXPECT_TRUE(holds(refusal<Corrupt>(folder), "layers 0 to 2 of 2"));
}

TEST(Run, ATornEndIsToleratedAndSaid) {
  const SampleFolder folder(2);
  for (const char* tail : {"{\"event\":\"st", "{\"event\":\n\"st", "{\"event\":\"st\n\n", "\xff\xfe"}) {
    folder.write("rank-1.jsonl", SampleFolder::steps() + tail);
    const auto run = read_run(folder.path());
    EXPECT_TRUE(run.ranks[1].torn);
    EXPECT_EQ(run.ranks[1].steps.size(), 10u);
    const Summary summary = summary_of(run);
    ASSERT_EQ(summary.notes.size(), 1u);
    EXPECT_TRUE(holds(summary.notes[0], "Rank 1 did not finish: its last recorded step is 10"));
    EXPECT_EQ(summary.replicas, Replicas::unknown);
  }
}

TEST(Run, RanksThatStoppedTogetherShareASentence) {
  auto run = sample_run(3, 10);
  for (RankRecord& rank : run.ranks) rank.end.reset();
  run.ranks[2].steps.pop_back();
  const Summary summary = summary_of(run);
  ASSERT_EQ(summary.notes.size(), 2u);
  EXPECT_EQ(summary.notes[0], "Rank 2 did not finish: its last recorded step is 9.");
  EXPECT_EQ(summary.notes[1], "Ranks 0 and 1 did not finish: their last recorded step is 10.");
}

TEST(Run, AbsentRanksAndTracesAreSaid) {
  const SampleFolder folder(4);
  folder.remove("rank-2.jsonl");
  for (const char* rank : {"1", "2", "3"}) folder.remove(fmt::format("trace-{}.jsonl", rank));
  const Summary summary = summary_of(read_run(folder.path()));
  ASSERT_EQ(summary.notes.size(), 2u);
  EXPECT_EQ(summary.notes[0], "Nothing was written by rank 2.");
  EXPECT_EQ(summary.notes[1], "No step was traced by ranks 1, 2 and 3.");
  EXPECT_TRUE(summary.traced);
}

TEST(Run, OnlyRunJsonStillGivesASummary) {
  const SampleFolder folder(2);
  for (const char* name : {"rank-0.jsonl", "rank-1.jsonl", "trace-0.jsonl", "trace-1.jsonl"}) folder.remove(name);
  const Summary summary = summary_of(read_run(folder.path()));
  EXPECT_EQ(summary.notes.front(), "Nothing was written by ranks 0 and 1.");
  EXPECT_FALSE(summary.traced);
}

TEST(Run, RanksThatTrainAloneExchangeNothing) {
  const SampleFolder folder(2);
  auto configuration = sample_configuration(2);
  configuration["exchange"] = "none";
  folder.write("run.json", configuration.dump());
  const Summary summary = summary_of(read_run(folder.path()));
  EXPECT_EQ(summary.budget.exchange_s, 0);
  EXPECT_EQ(summary.replicas, Replicas::alone);
}

TEST(Run, TheEndRepeatsAnEvaluationAndIsNone) {
  const SampleFolder folder(1);
  folder.write("rank-0.jsonl",
               R"({"event":"epoch","epoch":1,"step":7,"accuracy":0.75,"loss":0.5,"top_5_accuracy":0.875})"
               "\n" +
                   SampleFolder::steps() +
                   R"({"event":"end","rank":0,"steps":10,"accuracy":0.75,"loss":0.5,"digest":"x"})"
                   "\n");
  const auto run = read_run(folder.path());
  ASSERT_EQ(run.ranks[0].evaluations.size(), 1u);
  EXPECT_EQ(run.ranks[0].evaluations[0].step, 7);
  const Summary summary = summary_of(run);
  EXPECT_TRUE(summary.loss_is_evaluated);
  EXPECT_EQ(summary.loss, 0.5) << "of the same samples as the accuracy";
  EXPECT_EQ(summary.top_5_accuracy, 0.875);
  EXPECT_EQ(summary.evaluated_step, 7);
  EXPECT_TRUE(std::isnan(summary_of(sample_run(1, 10)).evaluated_step)) << "it was evaluated at its end";
}

TEST(Run, AnEndWithoutAnEvaluationHasTheTrainingLoss) {
  const SampleFolder folder(1);
  folder.write("rank-0.jsonl", SampleFolder::steps() + R"({"event":"end","rank":0,"steps":10,"loss":0.2,"digest":"x"})"
                                                       "\n");
  const auto run = read_run(folder.path());
  EXPECT_TRUE(run.ranks[0].evaluations.empty());
  EXPECT_FALSE(summary_of(run).loss_is_evaluated);
}

TEST(Run, ALossThatIsNotANumberIsSaid) {
  auto run = sample_run(2, 6);
  run.ranks[0].steps[3].loss = kUnknown;  // one rank alone may have had no samples
  EXPECT_TRUE(summary_of(run).notes.empty());
  run.ranks[1].steps[3].loss = kUnknown;
  EXPECT_EQ(summary_of(run).notes.at(0), "The loss is missing or not a number at step 4.");
}

}  // namespace
}  // namespace syncopate::tools::report::record
