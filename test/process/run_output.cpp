// The output of `syncopate run` for its ranks: whole lines, prefixes, rows, progress.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "process/run_program.hpp"

namespace syncopate::test {
namespace {

TEST(RunOutput, PrefixesEveryLineWithItsRank) {
  const Ended ended = syncopate(run_script(2, "echo out $SYNCOPATE_RANK; echo err $SYNCOPATE_RANK >&2"));
  EXPECT_EQ(ended.code, 0);
  for (const int rank : {0, 1}) {
    EXPECT_NE(ended.output.find(fmt::format("[{0}] out {0}\n", rank)), std::string::npos) << ended.output;
    EXPECT_NE(ended.error.find(fmt::format("[{0}] err {0}\n", rank)), std::string::npos) << ended.error;
  }
}

TEST(RunOutput, AJsonObjectPassesAsItIsAndOtherJsonDoesNot) {
  const Ended ended = syncopate(run_script(1, R"(printf '{"a": [1, {}] }\n{"open": 1\n[1]\n{} {}\n')"));
  EXPECT_EQ(ended.output, "{\"a\": [1, {}] }\n[0] {\"open\": 1\n[0] [1]\n[0] {} {}\n");
}

TEST(RunOutput, JsonModeLeavesNothingButObjectsOnStdout) {
  const Ended ended =
      syncopate({"run", "--json", "-n", "2", "--", "sh", "-c", "echo plain; echo '{\"x\": 1}'; exit 3"});
  EXPECT_EQ(ended.code, 3);
  const auto lines = lines_of(ended.output);
  ASSERT_EQ(lines.size(), 5U) << ended.output;
  for (const std::string& line : lines) EXPECT_TRUE(nlohmann::json::parse(line).is_object()) << line;
  const auto last = nlohmann::json::parse(lines.back());
  EXPECT_EQ(last.at("kind"), "RankFailed");
  EXPECT_EQ(last.at("code"), 3);
}

TEST(RunOutput, LinesOfManyRanksStayWhole) {
  const Ended ended = syncopate(run_script(
      4, "line=$(printf '%01500d' $SYNCOPATE_RANK); i=0; while [ $i -lt 100 ]; do echo $line; i=$((i+1)); done"));
  std::vector<std::string> expected;
  for (int rank = 0; rank < 4; ++rank)
    for (int i = 0; i < 100; ++i) expected.push_back(fmt::format("[{0}] {0:01500d}", rank));
  auto lines = lines_of(ended.output);
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines, expected);
}

TEST(RunOutput, ALongLineWithoutAnEndStaysWhole) {
  const Ended ended = syncopate(run_script(1, "head -c 3000000 /dev/zero | tr '\\0' x"));
  EXPECT_EQ(ended.output, fmt::format("[0] {:x>3000000}\n", ""));
}

TEST(RunOutput, WhatAProgramWritesBeforeItIsKilledIsShown) {
  const Ended ended = syncopate(run_script(1, "printf 'last words'; kill -9 $$"));
  EXPECT_EQ(ended.output, "[0] last words\n");
  EXPECT_EQ(ended.code, 137);
}

TEST(RunOutput, ABackgroundProcessThatKeepsThePipeDoesNotDelayTheEnd) {
  const Ended ended = syncopate(run_script(1, "sleep 1000 & echo done"));
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.output, "[0] done\n");
}

TEST(RunOutput, DrawsRankZerosProgressOnATerminalOnly) {
  const std::string script =
      "if [ -n \"$SYNCOPATE_PROGRESS\" ]; then printf '\\rstep 1' >&2; printf '\\rstep 2' >&2; fi; echo through";
  const Ended piped = syncopate(run_script(2, script));
  EXPECT_EQ(piped.error, "");
  const Ended shown = syncopate(run_script(2, script), {.environment = {}, .terminal = true});
  expect_words(shown.output, {"\x1b[Kstep 2", "[1] through"});
}

TEST(RunOutput, BlanksOverAProgressLineAreNoLine) {
  const std::string script = "printf 'step 1\\r' >&2; printf '      \\r' >&2";
  const Ended piped = syncopate(run_script(1, script));
  EXPECT_EQ(piped.error, "");
  const Ended shown = syncopate(run_script(1, script), {.terminal = true});
  EXPECT_EQ(shown.output.find("[0]"), std::string::npos) << shown.output;
  EXPECT_EQ(shown.output.find('\n'), std::string::npos) << shown.output;
}

}  // namespace
}  // namespace syncopate::test
