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
                    "A step took 6.00 s in the median. Shares of the time of all steps: forward 17\u202f%, "
                    "backward 33\u202f%, waiting for communication 33\u202f%."))
      << text;
  EXPECT_EQ(communication(run, summary),
            "Communication took 3.00 s: 1.00 s hidden behind the backward pass, 2.00 s exposed.");
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
  EXPECT_TRUE(holds(lead(run, record::summary_of(run)), "waiting for communication 33\u202f%"));
  EXPECT_TRUE(holds(page_of(run), "No step was traced"));
}

TEST(Page, ARunThatStoppedEarlySaysSo) {
  auto run = record::sample_run(2, 10);
  run.configuration["steps"] = 1000;
  EXPECT_EQ(headline(run, record::summary_of(run)), "2 ranks trained mlp for 10 of 1,000 planned steps");
}

TEST(Page, TheHeadlineNamesTheRanksThatAreMissing) {
  auto run = record::sample_run(4, 10);
  run.ranks[3] = {};
  run.ranks[2].end.reset();
  run.ranks[2].steps.resize(9);
  EXPECT_EQ(headline(run, record::summary_of(run)),
            "4 ranks trained mlp for 10 steps; rank 3 wrote nothing, rank 2 stopped at step 9");
}

TEST(Page, WaitingIsOneFigureOfTheWholeRun) {
  auto run = record::sample_run(2, 10);
  for (record::RankRecord& rank : run.ranks)
    for (record::Step& step : rank.steps) step.step_s = 8, step.wait_s = 3;  // the traced step waited 2 s of 6
  const std::string html = page_of(run);
  EXPECT_TRUE(holds(html, "waiting for communication 38\u202f%"));
  EXPECT_TRUE(
      holds(html, "<dt>Waiting</dt><dd><b>38\u202f%</b><span>of the time of all steps, blocked on communication"));
  EXPECT_TRUE(holds(html, "waiting for communication <b>3.00 s</b> <span>38\u202f%"));
  EXPECT_EQ(count(html, "<td class=\"n\">38\u202f%</td>"), 2u) << "of each rank";
}

TEST(Page, ShowsWhenTheRunStartedAndHowLongItTook) {
  auto run = record::sample_run(2, 10);
  EXPECT_FALSE(holds(page_of(run), "started"));
  run.start_time = 1'764'030'711, run.duration_s = 250;
  EXPECT_TRUE(holds(page_of(run), "started 2025-11-25 00:31 UTC, took 4 min 10 s"));
}

TEST(Page, TheLegendHasWhatThePictureHas) {
  const auto legend = [](const std::vector<Span>& spans) {
    auto run = record::sample_run(2, 10);
    for (record::RankRecord& rank : run.ranks) rank.spans = spans;
    const std::string html = page_of(run);
    const auto begin = html.find("<ul class=\"legend\">");
    return html.substr(begin, html.find("</ul>", begin) - begin);
  };
  const std::string served = legend({{"forward", "forward", 0, 1, 0}, {"wait", "one", 1, 2, 0}});
  EXPECT_TRUE(holds(served, "waiting for communication"));
  for (const char* absent : {"optimizer", "backward", "exposed", "bucket"})
    EXPECT_FALSE(holds(served, absent)) << absent;
  const std::string exposed = legend({{"forward", "forward", 0, 1, 0}, {"exchange", "one", 1, 2, 400}});
  EXPECT_TRUE(holds(exposed, "exposed"));
  EXPECT_FALSE(holds(exposed, "a bucket on its way, hidden"));
}

TEST(Page, CopiesHaveALaneOfTheirOwn) {
  auto run = record::sample_run(2, 10);
  EXPECT_FALSE(holds(page_of(run), "accelerator"));
  for (record::RankRecord& rank : run.ranks) {
    rank.spans.push_back({"copy down", "two", 1.5, 2, 800});
    rank.spans.push_back({"copy up", "weights of two", 4, 4.5, 800});
  }
  const std::string html = page_of(run);
  EXPECT_EQ(count(html, ">copies</text>"), 2u) << "of each rank";
  EXPECT_EQ(count(html, "<rect class=\"copy\" x="), 4u);
  EXPECT_TRUE(holds(html, "copy up, weights of two\n0.50 s, 800 B<"));
  EXPECT_TRUE(holds(html, "a copy between accelerator and CPU</li>"));
  EXPECT_TRUE(holds(
      html, "Copies between accelerator and CPU were under way for 1.00 s, 0.50 s of it hidden behind computing."));
  EXPECT_EQ(unbalanced(html), "");
  for (record::RankRecord& rank : run.ranks)
    std::erase_if(rank.spans, [](const Span& span) { return span.track == "exchange"; });
  const std::string alone = page_of(run);
  EXPECT_TRUE(holds(alone, ">copies</text>"));
  EXPECT_FALSE(holds(alone, ">network</text>"));
}

TEST(Page, TheTrainingCurveKeepsItsScaleBesideAnEvaluation) {
  auto run = record::sample_run(2, 10);
  EXPECT_TRUE(holds(page_of(run), "dots: evaluation"));
  run.ranks[0].evaluations = {{10, 1, 0.75, 70}};
  const std::string html = page_of(run);
  EXPECT_FALSE(holds(html, "dots: evaluation"));
  EXPECT_TRUE(holds(html, "Evaluation loss, on a scale of its own"));
}

TEST(Page, TheHeadlineNamesTheStepOfAnEvaluationThatWasNotTheEnd) {
  auto run = record::sample_run(1, 10);
  EXPECT_FALSE(holds(page_of(run), "after step"));
  run.ranks[0].evaluations = {{7, 1, 0.75, 0.5}};
  EXPECT_TRUE(holds(page_of(run), "after step 7"));
  run.ranks[0].evaluations = {{7, 1, record::kUnknown, 0.5}};
  EXPECT_TRUE(holds(page_of(run), "after step 7"));
}

TEST(Page, TheHeadlineHasTheTopFiveAccuracyIfItIsKnown) {
  auto run = record::sample_run(1, 10);
  run.ranks[0].evaluations = {{10, 1, 0.75, 0.5}};
  EXPECT_FALSE(holds(page_of(run), "top 5"));
  run.ranks[0].evaluations[0].top_5_accuracy = 0.875;
  EXPECT_TRUE(holds(page_of(run), "at the end; top 5: 87.5\u202f%"));
}

TEST(Page, TheAxisOfAccuracyFitsTheData) {
  auto run = record::sample_run(1, 10);
  run.ranks[0].evaluations = {{5, 1, 0.974, 0.5}, {10, 2, 0.981, 0.5}};
  const std::string html = page_of(run);
  EXPECT_TRUE(holds(html, ">97.4\u202f%<"));
  EXPECT_FALSE(holds(html, ">20\u202f%<"));
}

TEST(Page, RunsOfServersHaveASectionOnThemAndWholeStepsOfStaleness) {
  auto run = record::sample_run(2, 10);
  run.exchange = "parameter_server";
  for (record::RankRecord& rank : run.ranks) rank.end->served = record::Served{0, 0, 100, 100, 2};
  run.ranks[0].end->served->servers = {{"10.0.0.4:7000", 2048, 4096, 8192}};
  const std::string html = page_of(run);
  EXPECT_TRUE(holds(html, "<td class=\"t\">10.0.0.4:7000</td><td class=\"n\">2 KiB</td>"));
  EXPECT_TRUE(holds(html, "reconnections"));
  EXPECT_FALSE(holds(html, "Communication hidden"));
  const auto clocks = html.find("Clocks: ");
  EXPECT_EQ(html.substr(clocks, html.find("</figure>", clocks) - clocks).find(">0.5<"), std::string::npos);
}

TEST(Page, ShowsWhatACodecSentOfEachGradient) {
  auto run = record::sample_run(2, 10);
  EXPECT_FALSE(holds(page_of(run), "<h2>Codec<"));
  run.ranks[0].evaluations = {{5, 1, 0.9, 0.5, {{"fc.weight", 3000, 0.25}, {"fc.bias", 1000, 0.01}}},
                              {10, 2, 0.9, 0.5, {{"fc.weight", 3000, 0.02, 1.5, 0.75}, {"fc.bias", 1000, 0.01}}}};
  const std::string html = page_of(run);
  EXPECT_TRUE(holds(html, "<h2>Codec<"));
  const auto row = html.find("<td class=\"t\">fc.weight</td>");
  ASSERT_NE(row, std::string::npos);
  const std::string cells = html.substr(row, html.find("</tr>", row) - row);
  for (const char* cell : {">3,000<", ">25", ">2.0", ">1.500<", ">0.75<"}) EXPECT_TRUE(holds(cells, cell)) << cells;
}

TEST(Markup, TimesOfOneFamilyHaveOneUnitAndEnoughDigits) {
  EXPECT_EQ(time_range(0.15, 0.152, time_unit(0.15)), "150 to 152 ms");
  EXPECT_EQ(time_range(0.1501, 0.1503, time_unit(0.15)), "150.1 to 150.3 ms");
  const TimeUnit unit = time_unit(0.509, 0.0407);
  EXPECT_EQ(unit(0.509), "509.0 ms");
  EXPECT_EQ(unit(0.0407), "40.7 ms");
  EXPECT_EQ(rate(0.1923), "0.19");
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
  EXPECT_EQ(count(html, "class=\"optimizer\" x="), 3u) << "the update, on two ranks, and the bar of the mean step";
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
