// Planned against actual: buckets matched by name, steps predicted, and a page without either.
#include "report/page/planned.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "report/page/page.hpp"
#include "report/report.hpp"
#include "sample.hpp"

namespace syncopate::tools::report::page {
namespace {

using record::holds;

record::Run planned_run() {
  record::Run run = record::sample_run(2, 10);
  for (record::RankRecord& rank : run.ranks) {
    rank.planned = {{"planned", "two", 2, 3, 800}, {"planned", "one", 3, 4.5, 400}};
    for (record::Step& step : rank.steps) step.predicted_s = 5.4;
  }
  run.ranks[1].planned[0].end_s = 4;
  return run;
}

TEST(Planned, BucketsStandBesideWhatBecameOfThem) {
  const std::vector<PlannedBucket> buckets = planned_buckets(planned_run());
  ASSERT_EQ(buckets.size(), 2U);
  EXPECT_EQ(buckets[0].name, "two");
  EXPECT_DOUBLE_EQ(buckets[0].planned_begin_s, 2);
  EXPECT_DOUBLE_EQ(buckets[0].planned_end_s, 3.5) << "mean over the ranks";
  EXPECT_DOUBLE_EQ(buckets[0].end_s, 4);
  EXPECT_DOUBLE_EQ(buckets[1].begin_s, 4);
}

TEST(Planned, ABucketThatDidNotTravelAsForetoldHasNoActualTimes) {
  auto run = planned_run();
  for (record::RankRecord& rank : run.ranks) rank.planned[1].name = "other";
  EXPECT_TRUE(std::isnan(planned_buckets(run)[1].begin_s));
  const std::string html = render(run, record::summary_of(run), "");
  EXPECT_TRUE(holds(html, "1 bucket did not travel as predicted"));
  EXPECT_FALSE(holds(html, "nan"));
}

TEST(Planned, StepsAreComparedWithWhatWasForetold) {
  const auto run = planned_run();
  const record::Summary summary = record::summary_of(run);
  EXPECT_DOUBLE_EQ(summary.predicted_s, 5.4);
  EXPECT_NEAR(prediction_error(summary), 0.1, 1e-12);
  const std::string html = render(run, summary, "");
  EXPECT_TRUE(holds(html, "<h2>Planned and actual</h2>"));
  EXPECT_TRUE(holds(html, "predicted to take 5.40 s; the median took 6.00 s (+10.0 %)")) << plan_section(run, summary);
  EXPECT_TRUE(holds(html, "class=\"planned\""));
}

TEST(Planned, IsNoPartOfWhatHappened) {
  const auto plain = record::sample_run(2, 10), with = planned_run();
  EXPECT_EQ(record::summary_of(with).budget.exchange_s, record::summary_of(plain).budget.exchange_s);
  EXPECT_EQ(record::summary_of(with).budget.step_s, record::summary_of(plain).budget.step_s);
  EXPECT_TRUE(plan_section(plain, record::summary_of(plain)).empty());
}

TEST(Planned, ComesFromTheTraceAndTheRowsOfTheRun) {
  const record::SampleFolder folder(2);
  folder.append("trace-0.jsonl", R"({"track":"planned","name":"two","begin_s":2,"end_s":9,"bytes":800})"
                                 "\n");
  folder.append("rank-0.jsonl", R"({"event":"step","step":11,"step_s":6,"predicted_s":5})"
                                "\n");
  const auto run = record::read_run(folder.path());
  EXPECT_EQ(run.ranks[0].planned.size(), 1U);
  EXPECT_EQ(run.ranks[0].spans.size(), record::sample_spans().size());
  EXPECT_EQ(run.ranks[0].steps.back().predicted_s, 5);
  const auto row = write_report(folder.path(), {});
  EXPECT_EQ(row.at("predicted_s"), 5);
  EXPECT_TRUE(holds(folder.read("trace.json"), "planned"));
}

TEST(Planned, StepsThatOnlyMeasuredDoNotCount) {
  auto run = record::sample_run(1, 10);
  for (std::size_t i = 0; i < 8; ++i) run.ranks[0].steps[i].step_s = 50, run.ranks[0].steps[i].measuring = true;
  run.ranks[0].end.reset();
  EXPECT_DOUBLE_EQ(record::summary_of(run).step_s, 6);
}

}  // namespace
}  // namespace syncopate::tools::report::page
