// Figures: rows become curves, values become coordinates, and what cannot be drawn is refused.
#include <gtest/gtest.h>

#include "figure/curves.hpp"
#include "figure/lanes.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate::tools::figure {
namespace {

using Json = nlohmann::json;

TEST(Axis, EndsAreRoundAndHoldTheValues) {
  const svg::Axis tens = svg::round_axis(3e-5, 0.2, 8, svg::Steps::tens);
  EXPECT_DOUBLE_EQ(tens.low, 1e-5);
  EXPECT_DOUBLE_EQ(tens.high, 1);
  EXPECT_EQ(tens.ticks.size(), 6U);
  const svg::Axis even = svg::round_axis(0, 37, 8);
  EXPECT_DOUBLE_EQ(even.low, 0);
  EXPECT_DOUBLE_EQ(even.high, 40);
  EXPECT_DOUBLE_EQ(even.ticks[1], 5);
}

TEST(Axis, OfOneValueStillHasAnExtent) {
  for (const svg::Steps steps : {svg::Steps::linear, svg::Steps::tens, svg::Steps::twos}) {
    const svg::Axis scale = svg::round_axis(4, 4, 8, steps);
    EXPECT_LT(scale.low, scale.high);
  }
}

TEST(Axis, PutsEqualFactorsEquallyFarApart) {
  svg::Axis scale = svg::round_axis(1, 1024, 20, svg::Steps::twos);
  scale.from = 0, scale.to = 100;
  EXPECT_DOUBLE_EQ(scale(1), 0);
  EXPECT_DOUBLE_EQ(scale(32), 50);
  EXPECT_DOUBLE_EQ(scale(1024), 100);
}

TEST(Curves, AreToldApartByTheirKeysAndOrderedByX) {
  const std::vector<Json> rows{{{"ranks", 4}, {"ratio", 1.5}, {"algorithm", "mst"}},
                               {{"ranks", 2}, {"ratio", 1.0}, {"algorithm", "mst"}},
                               {{"ranks", 2}, {"ratio", 1.1}, {"algorithm", "ring"}},
                               {{"ranks", 8}, {"ratio", nullptr}, {"algorithm", "ring"}},
                               {{"event", "note"}}};
  const auto curves = curves_of(rows, {.x = "ranks", .y = "ratio", .by = {"algorithm"}});
  ASSERT_EQ(curves.size(), 2U);
  EXPECT_EQ(curves[0].label, "mst");
  ASSERT_EQ(curves[0].samples.size(), 2U);
  EXPECT_EQ(curves[0].samples[0].x, 2);
  EXPECT_EQ(curves[1].samples.size(), 1U);
}

TEST(Curves, OfRepeatedMeasurementsShowTheLastWithItsSpread) {
  const auto row = [](double median) {
    return Json{{"bytes", 4}, {"seconds", {{"median", median}, {"min", 1}, {"max", 9}}}, {"contender", "gloo"}};
  };
  const auto curves = curves_of({row(3), row(5)}, {});
  ASSERT_EQ(curves.size(), 1U);
  ASSERT_EQ(curves[0].samples.size(), 1U);
  EXPECT_EQ(curves[0].samples[0].y, 5);
  EXPECT_EQ(curves[0].samples[0].high, 9);
}

TEST(Plot, NamesEveryCurveAndEscapesWhatItWrites) {
  const Plot plot{"a < b", {"ranks"}, {"seconds"}, {{"x & y", {{1, 2, 2, 2}, {2, 3, 3, 3}}}}};
  const std::string svg = svg_of(plot);
  test::expect_words(svg, {"a &lt; b", "x &amp; y"});
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
}

TEST(Lanes, HaveAPanelForEachPolicyAndABarForEachSpan) {
  const auto row = [](const char* policy, const char* track, double begin_s, double end_s) {
    return Json{{"policy", policy}, {"track", track}, {"name", "3..1"}, {"begin_s", begin_s}, {"end_s", end_s}};
  };
  const auto panels = panels_of({row("wfbp", "forward", 0, 1), row("online", "exchange", 1, 2), Json{{"ranks", 4}},
                                 row("wfbp", "exchange", 1, 3)},
                                {"policy"});
  ASSERT_EQ(panels.size(), 2U);
  EXPECT_EQ(panels[0].label, "wfbp");
  EXPECT_EQ(panels[0].bars.size(), 2U);
  EXPECT_EQ(panels[1].bars.at(0).end_s, 2);
  const std::string svg = svg_of_lanes("a < b", panels);
  test::expect_words(svg, {"a &lt; b", ">online</text>"});
  EXPECT_NE(svg.find(">3.00 s</text>"), std::string::npos) << "where the step of wfbp ends";
  EXPECT_THROW(std::ignore = svg_of_lanes("", {}), Misuse);
}

TEST(Plot, RefusesNothingAndLogarithmsOfZero) {
  EXPECT_THROW(std::ignore = svg_of({"", {"x"}, {"y"}, {}}), Misuse);
  EXPECT_THROW(std::ignore = svg_of({"", {"x", svg::Steps::tens}, {"y"}, {{"c", {{0, 1, 1, 1}}}}}), Misuse);
}

TEST(Plot, WritesValuesInTheUnitOfTheirAxis) {
  EXPECT_EQ(written(0.001, "seconds"), "1 ms");
  EXPECT_EQ(written(1048576, "bytes"), "1 MiB");
  EXPECT_EQ(written(8, "ranks"), "8");
}

}  // namespace
}  // namespace syncopate::tools::figure
