// The page: complete, self-contained, escaped, well-formed, small; and the command that writes it.
#include "report/page/page.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>

#include "html.hpp"
#include "report/page/headline.hpp"
#include "report/page/markup.hpp"
#include "report/report.hpp"
#include "sample.hpp"
#include "syncopate/error.hpp"

namespace syncopate::tools::report::page {
namespace {

using record::holds;

TEST(Page, SaysInPlainWordsWhereTheTimeWent) {
  const auto run = record::sample_run(2, 10);
  const record::Summary summary = record::summary_of(run);
  EXPECT_EQ(headline(run, summary), "2 ranks trained mlp for 10 steps");
  const std::string text = lead(run, summary);
  EXPECT_TRUE(holds(text,
                    "Of a 6.00 s step, 1.00 s went forward and 2.00 s backward; communication took 3.00 s, of which "
                    "1.00 s hid behind the backward pass and 2.00 s did not."))
      << text;
  EXPECT_TRUE(holds(text, "All ranks ended with the same parameters, bit for bit."));
}

TEST(Page, SaysWhichBucketTookWhichCodec) {
  auto run = record::sample_run(2, 10);
  EXPECT_FALSE(holds(page_of(run), "<code>topk:0.01</code>"));
  run.buckets[0].codec = "topk:0.01";
  run.buckets[1].codec = "<none>";
  EXPECT_TRUE(holds(page_of(run), "<code>topk:0.01</code>"));
  EXPECT_TRUE(holds(page_of(run), "<code>&lt;none&gt;</code>"));
}

TEST(Page, SaysWhichCodecWasNotUsed) {
  auto run = record::sample_run(2, 10);
  EXPECT_FALSE(holds(lead(run, record::summary_of(run)), "not used"));
  run.configuration["refused_codec"] = "topk:0.3";
  EXPECT_TRUE(holds(lead(run, record::summary_of(run)), "Codec topk:0.3 was asked for and not used"));
}

TEST(Page, WithoutATraceTheStepRowsTellWhereTheTimeWent) {
  auto run = record::sample_run(2, 10);
  for (record::RankRecord& rank : run.ranks) rank.spans.clear();
  EXPECT_TRUE(holds(lead(run, record::summary_of(run)), "2.00 s were spent waiting for communication"));
  EXPECT_TRUE(holds(page_of(run), "No step was traced"));
}

TEST(Page, ARunThatStoppedEarlySaysSo) {
  auto run = record::sample_run(2, 10);
  run.configuration["steps"] = 1000;
  EXPECT_EQ(headline(run, record::summary_of(run)), "2 ranks trained mlp for 10 of 1,000 planned steps");
}

TEST(Page, SectionsStandInTheirOrder) {
  const std::string html = page_of(record::sample_run(2, 10));
  std::size_t last = 0;
  for (const char* part : {"<h1>", "class=\"figures\"", "<h2>Learning<", "<h2>Throughput<", "<h2>One step<",
                           "<h2>Bytes per step<", "<h2>Ranks<", "<h2>Configuration<"}) {
    const std::size_t at = html.find(part);
    ASSERT_NE(at, std::string::npos) << part;
    EXPECT_GT(at, last) << part;
    last = at;
  }
}

TEST(Page, EveryBucketOfEveryRankIsInTheTimeline) {
  const std::string html = page_of(record::sample_run(3, 10));
  EXPECT_EQ(count(html, "class=\"clear edged\""), 6u);
  EXPECT_EQ(count(html, "class=\"exposed\" x="), 6u);
  EXPECT_TRUE(holds(html, "bucket 0, two\n2.00 s, 800 B, 0.000 Gbit/s\n1.00 s exposed"));
}

TEST(Page, WeightsStandInTheTimelineUnderTheBucketTheyBelongTo) {
  auto run = record::sample_run(2, 10);
  for (record::RankRecord& rank : run.ranks)
    rank.spans = {{"backward", "two", 0, 2, 0},    {"exchange", "two", 1, 2, 800},  {"exchange", "one", 2, 3, 400},
                  {"update", "one", 3, 4, 0},      {"broadcast", "one", 4, 5, 400}, {"broadcast", "two", 5, 6, 800},
                  {"forward", "forward", 2, 9, 0}, {"wait", "one", 2, 5, 0}};
  const std::string html = page_of(run);
  EXPECT_TRUE(holds(html, "weights of bucket 1, one\n1.00 s, 400 B, 0.000 Gbit/s\n1.00 s exposed"));
  EXPECT_TRUE(holds(html, "weights of bucket 0, two\n1.00 s, 800 B, 0.000 Gbit/s\n0.00 s exposed"));
  EXPECT_EQ(count(html, "class=\"weights\" x="), 2u) << "the hidden one, on two ranks";
  EXPECT_EQ(count(html, "class=\"optimizer\" x="), 2u) << "the update, on two ranks";
  EXPECT_TRUE(holds(html, "its weights on their way"));
  EXPECT_TRUE(holds(html, "from backward pass to backward pass"));
  EXPECT_FALSE(holds(page_of(record::sample_run(2, 10)), "its weights on their way"));
}

TEST(Page, NeedsNothingFromElsewhere) {
  const std::string html = page_of(record::sample_run(2, 10));
  for (const char* outside : {"http:", "https:", "src=", "@import", "<link", "url(\"", "url(h"})
    EXPECT_FALSE(holds(html, outside)) << outside;
  EXPECT_TRUE(holds(html, "prefers-color-scheme: dark"));
}

TEST(Page, TextFromTheRunIsEscaped) {
  const std::string evil = "<img onerror=\"alert('x')\">&";
  auto run = record::sample_run(2, 10);
  run.model = evil;
  for (const char* key : {"model", "data", "command"}) run.configuration[key] = evil;
  run.configuration[evil] = evil;
  for (record::Layer& layer : run.layers) layer.name = evil;
  for (record::RankRecord& rank : run.ranks) {
    rank.end->digest = evil;
    rank.error = evil;
    for (Span& span : rank.spans) span.name = evil;
  }
  const std::string html = page_of(run);
  EXPECT_FALSE(holds(html, "<img"));
  EXPECT_FALSE(holds(html, "onerror=\""));
  EXPECT_TRUE(holds(html, "&lt;img"));
  EXPECT_EQ(unbalanced(html), "");
}

TEST(Page, EveryElementIsClosed) {
  EXPECT_EQ(unbalanced(page_of(record::sample_run(1, 10))), "");
  EXPECT_EQ(unbalanced(page_of(record::sample_run(40, 1))), "");
  EXPECT_EQ(unbalanced(page_of(record::sample_run(2, 0))), "");
  auto nothing = record::sample_run(3, 0);
  for (record::RankRecord& rank : nothing.ranks) rank = {};
  nothing.layers.clear(), nothing.buckets.clear();
  EXPECT_EQ(unbalanced(page_of(nothing)), "");
}

TEST(Page, NoNumberIsWrittenAsNan) {
  auto run = record::sample_run(2, 3);
  for (record::RankRecord& rank : run.ranks)
    for (record::Step& step : rank.steps) step = {step.step};
  run.gradient_bytes = record::kUnknown;
  const std::string html = page_of(run);
  EXPECT_FALSE(holds(html, "nan"));
  EXPECT_FALSE(holds(html, ">inf"));
}

TEST(Page, DifferentReplicasAreShown) {
  auto run = record::sample_run(3, 10);
  EXPECT_EQ(count(page_of(run), " equal</td>"), 3u);
  run.ranks[1].end->digest = "other";
  const std::string html = page_of(run);
  EXPECT_EQ(count(html, "<strong class=\"bad\">NOT equal</strong>"), 1u);
  EXPECT_FALSE(holds(html, "bit for bit"));
}

TEST(Page, EmulatedComputingIsSaid) {
  auto run = record::sample_run(2, 10);
  EXPECT_FALSE(holds(page_of(run), "emulated by sleeping"));
  run.emulated_compute = true;
  EXPECT_TRUE(holds(page_of(run), "emulated by sleeping"));
}

TEST(Page, ALongRunStaysSmall) { EXPECT_LT(page_of(record::sample_run(2, 100'000)).size(), 300'000u); }

TEST(Report, WritesPageTraceAndOneRow) {
  const record::SampleFolder folder(2);
  const auto row = write_report(folder.path(), {});
  EXPECT_EQ(row.at("steps"), 10);
  EXPECT_NEAR(row.at("overlap_share").get<double>(), 1.0 / 3, 1e-12);
  EXPECT_NEAR(row.at("exposed_s").get<double>(), 2, 1e-12);
  EXPECT_EQ(row.at("digests_equal"), true);
  EXPECT_EQ(row.at("report"), (folder.path() / "report.html").string());
  EXPECT_EQ(unbalanced(folder.read("report.html")), "");
  EXPECT_TRUE(nlohmann::json::accept(folder.read("trace.json")));
}

TEST(Report, APageElsewhereHasATraceOfItsName) {
  const record::SampleFolder folder(2), other(1);
  const auto row = write_report(folder.path(), other.path() / "first.html");
  EXPECT_EQ(row.at("trace"), (other.path() / "first.trace.json").string());
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "report.html"));
  EXPECT_TRUE(holds(other.read("first.html"), "first.trace.json"));
}

TEST(Report, APlaceThatCannotBeWrittenIsAnError) {
  const record::SampleFolder folder(1);
  EXPECT_THROW((void)write_report(folder.path(), folder.path() / "absent" / "page.html"), SystemFailure);
}

/// Exit code and output of the command line.
std::pair<int, std::string> run_command(const std::string& arguments) {
  std::FILE* pipe = ::popen((std::string(SYNCOPATE_COMMAND_LINE) + " " + arguments + " 2>/dev/null").c_str(), "r");
  std::string output;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output += static_cast<char>(c);
  return {WEXITSTATUS(::pclose(pipe)), output};
}

nlohmann::json parsed(const std::string& row) { return nlohmann::json::parse(row, nullptr, false); }

TEST(ReportCommand, PrintsOneRow) {
  const record::SampleFolder folder(2);
  const auto [code, row] = run_command("report --json " + folder.path().string());
  EXPECT_EQ(code, 0);
  EXPECT_EQ(parsed(row).value("ranks", 0), 2);
}

TEST(ReportCommand, AFolderThatIsNoRunIsMisuse) {
  const auto [code, row] = run_command("report --json /nonexistent");
  EXPECT_EQ(code, 2);
  EXPECT_EQ(parsed(row).value("kind", ""), "Misuse");
  EXPECT_EQ(run_command("report").first, 2);
}

TEST(ReportCommand, DamageIsAFailure) {
  const record::SampleFolder folder(1);
  folder.write("run.json", "{");
  const auto [code, row] = run_command("report --json " + folder.path().string());
  EXPECT_EQ(code, 1);
  EXPECT_EQ(parsed(row).value("kind", ""), "Corrupt");
}

}  // namespace
}  // namespace syncopate::tools::report::page
