// Sections that only some runs have: parts of a recipe, tiers of input, workers of a parameter server.
#include <gtest/gtest.h>

#include "html.hpp"
#include "report/page/markup.hpp"
#include "sample.hpp"

namespace syncopate::tools::report::page {
namespace {

using record::holds;

TEST(Section, TellsThePartsOfARecipeWithTheMediansOfTheirSteps) {
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

TEST(Section, SaysWhereTheSamplesCameFromAndWhatWaitingForThemTook) {
  record::Run run = record::sample_run(2, 10);
  EXPECT_FALSE(holds(page_of(run), "<h2>Input<")) << "without a cache there are no tiers";
  for (record::RankRecord& rank : run.ranks) {
    for (record::Step& step : rank.steps) step.input_s = 1.5, step.step_s = 7.5;
    rank.spans.push_back({"input", "input", 6, 7.5, 0});
    rank.end->input = {{0, {}, {}, {}, {30, 3 << 20}, 0}, {1, {15, 1 << 20}, {6, 1 << 20}, {9, 1 << 20}, {}, 2}};
  }
  const std::string html = page_of(run);
  EXPECT_TRUE(holds(html, fmt::format("Ranks waited for input {} of the time.", percent(0.2))));
  EXPECT_TRUE(holds(html, fmt::format("Shares of the time of all steps: waiting for input {}, forward", percent(0.2))));
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

TEST(Section, TellsHowOldTheWeightsOfWorkersWereAndTheirBytesBothWays) {
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
  EXPECT_TRUE(holds(html, "Traffic to and from servers is not traced"));
  EXPECT_EQ(unbalanced(html), "");
}

}  // namespace
}  // namespace syncopate::tools::report::page
