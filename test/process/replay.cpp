// `syncopate bench server --replay` in a lab: a row for every contender of the thesis.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "process/run_program.hpp"

namespace syncopate::test {
namespace {

#ifdef SYNCOPATE_HAVE_SERVER
TEST(LabReplay, OfOneModelHasARowForEveryContender) {
  const Ended ended =
      syncopate({"bench", "server", "--replay", "thesis", "--models", "resnet110", "--workers", "2", "--servers", "1",
                 "--lab", "2gbit", "--rounds", "1", "--steps", "1", "--dilation", "0.01", "--json"});
  if (ended.error.find("no lab on this machine") != std::string::npos ||
      ended.output.find("no lab on this machine") != std::string::npos ||
      ended.output.find("SYNCOPATE_BENCHMARKS") != std::string::npos)
    GTEST_SKIP() << ended.error;
  ASSERT_EQ(ended.code, 0) << ended.error << ended.output;
  std::set<std::string> contenders;
  for (const std::string& line : lines_of(ended.output)) {
    const auto row = nlohmann::json::parse(line);
    EXPECT_EQ(row.at("model"), "resnet110");
    EXPECT_EQ(row.at("correct"), true) << row;
    EXPECT_EQ(row.at("step_seconds").at("n"), 1) << row;
    contenders.insert(row.at("contender"));
  }
  EXPECT_EQ(contenders,
            (std::set<std::string>{"alone", "codec", "combined", "front_first", "ssp", "traditional", "wait_free"}));
}
#endif

}  // namespace
}  // namespace syncopate::test
