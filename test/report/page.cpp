// The page: complete, self-contained, escaped, well-formed, small; and the command that writes it.
#include "report/page/page.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <regex>
#include <set>

#include "report/page/headline.hpp"
#include "report/page/markup.hpp"
#include "report/report.hpp"
#include "sample.hpp"
#include "syncopate/error.hpp"

namespace syncopate::tools::report::page {
namespace {

using record::holds;

std::string page_of(const record::Run& run) { return render(run, record::summary_of(run), "trace.json"); }

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

/// The first tag that is not closed in order; empty when all are.
std::string unbalanced(const std::string& html) {
  static const std::set<std::string> kVoid{"meta", "col"};
  static const std::regex kTag("<(/?)([a-z][a-z0-9]*)([^<>]*)>");
  const std::string text = std::regex_replace(html, std::regex("<(script|style)>[^]*?</\\1>"), "");
  std::vector<std::string> open;
  for (std::sregex_iterator tag(text.begin(), text.end(), kTag), end; tag != end; ++tag) {
    const std::string name = (*tag)[2], rest = (*tag)[3];
    if ((*tag)[1].length() == 0) {
      if (!kVoid.contains(name) && !rest.ends_with('/')) open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      return name;
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : open.back();
}

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

TEST(Page, TellsThePartsOfARecipeWithTheMediansOfTheirSteps) {
  record::Run run = record::sample_run(2, 10);
  EXPECT_FALSE(holds(page_of(run), "<h2>Parts<")) << "without a recipe there are none";
  run.parts = {{.number = 1,
                .epochs = 2,
                .resolution = 96,
                .batch = 8,
                .first_rate = 0.5,
                .last_rate = 0.25,
                .codec = "topk:0.01",
                .exchange = "hier<archical"},
               {.number = 2, .first_epoch = 2, .epochs = 1, .batch = 1234, .codec = "none", .exchange = "sharded"},
               {.number = 3, .first_epoch = 3, .epochs = 1, .batch = 1}};
  for (record::RankRecord& rank : run.ranks)
    for (record::Step& step : rank.steps) {
      step.part = step.step <= 4 ? 1 : 2;
      step.step_s = step.part == 1 ? 2 : 7;
      step.wire_bytes = step.part == 1 ? 1024 : 2048;
    }
  const std::string html = page_of(run);
  const auto row = [&](const std::vector<std::string>& cells) {
    const std::size_t begin = html.find("<tr><td class=\"n\">" + cells[0] + "</td>", html.find("<h2>Parts<"));
    const std::string found = html.substr(begin, html.find("</tr>", begin) - begin);
    for (const std::string& cell : cells) EXPECT_TRUE(holds(found, ">" + cell + "</td>")) << cell << " in " << found;
  };
  row({"1", "1–2", "96", "8", "0.5–0.25", "topk:0.01", "hier&lt;archical", "4", "2.00 s", bytes(1024)});
  row({"2", "3", "–", "1,234", "none", "sharded", "6", "7.00 s", bytes(2048)});
  row({"3", "4", "0"});
}

TEST(Page, SaysWhereTheSamplesCameFromAndWhatWaitingForThemTook) {
  record::Run run = record::sample_run(2, 10);
  EXPECT_FALSE(holds(page_of(run), "<h2>Input<")) << "without a cache there are no tiers";
  for (record::RankRecord& rank : run.ranks) {
    for (record::Step& step : rank.steps) step.input_s = 1.5;
    rank.spans.push_back({"input", "input", 6, 7.5, 0});
    rank.end->input = {{0, {}, {}, {}, {30, 3 << 20}, 0}, {1, {15, 1 << 20}, {6, 1 << 20}, {9, 1 << 20}, {}, 2}};
  }
  const std::string html = page_of(run);
  EXPECT_TRUE(holds(html, fmt::format("Ranks waited for input {} of the time.", percent(0.25))));
  EXPECT_TRUE(holds(html, "step, 1.50 s waited for input, 1.00 s went forward"));
  EXPECT_TRUE(holds(html, fmt::format("waiting for input <b>1.50 s</b> <span>{}", percent(0.2))));
  const auto cell = [](double share, const char* bytes) {
    return fmt::format("{} <span class=\"quiet\">{}</span>", percent(share), bytes);
  };
  EXPECT_TRUE(holds(html, ">60</td><td")) << "samples of both ranks";
  for (const std::string& tier : {cell(1, "6 MiB"), cell(0.5, "2 MiB"), cell(0.3, "2 MiB"), cell(0.2, "2 MiB")})
    EXPECT_TRUE(holds(html, tier)) << tier;
  EXPECT_TRUE(holds(html, ">4</td></tr>")) << "damaged on both ranks";
  EXPECT_EQ(unbalanced(html), "");
}

TEST(Page, TellsHowOldTheWeightsOfWorkersWereAndTheirBytesBothWays) {
  record::Run run = record::sample_run(2, 10);
  EXPECT_FALSE(holds(page_of(run), "<h2>Parameter server<")) << "without servers there are no workers";
  run.ranks[0].end->served = {4, 1.5, 3 << 20, 5 << 20};
  run.ranks[1].end->served = {2, 0.5, 1 << 20, 7 << 20};
  for (record::Step& step : run.ranks[1].steps) step.step_s *= 2;
  const std::string html = page_of(run);
  for (const char* cell :
       {">1.5</td>", ">4</td>", ">3 MiB</td>", ">5 MiB</td>", ">0.5</td>", ">1 MiB</td>", ">7 MiB</td>"})
    EXPECT_TRUE(holds(html, cell)) << cell;
  EXPECT_TRUE(holds(html, "the fastest worker is ahead of the slowest"));
  EXPECT_TRUE(holds(html, "what went to servers and back is not traced"));
  EXPECT_EQ(unbalanced(html), "");
}

TEST(Clocks, AreComparedAtTheTimesOfTheirSteps) {
  record::Run run;
  run.ranks.resize(2);
  for (int step = 1; step <= 4; ++step) {
    run.ranks[0].steps.push_back({.step = static_cast<double>(step), .step_s = 1});
    run.ranks[1].steps.push_back({.step = static_cast<double>(step), .step_s = 1.75});
  }
  std::vector<std::pair<double, double>> spread;
  for (const record::Point& point : record::clock_spread(run)) spread.emplace_back(point.x, point.y);
  // The slow one has ended 1 step at 1.75 s, 2 at 3.5 s.
  EXPECT_EQ(spread, (std::vector<std::pair<double, double>>{{1, 1}, {2, 1}, {3, 2}, {4, 2}}));
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
