// The example of a user's own libtorch model: its ranks see different samples and keep the same weights.
#include <gtest/gtest.h>

#include <set>

#include "process/run_program.hpp"

namespace syncopate::test {
namespace {

TEST(OwnModel, RanksKeepTheSameWeightsAndLearn) {
  const Ended ended = syncopate({"run", "-n", "3", "--", OWN_MODEL});
  ASSERT_EQ(ended.code, 0) << ended.error;
  std::set<std::string> weights;
  const auto lines = lines_of(ended.output);
  ASSERT_EQ(lines.size(), 3U) << ended.output;
  for (const std::string& line : lines) {
    const auto loss = line.find("loss "), sum = line.find("sum of weights ");
    ASSERT_TRUE(loss != std::string::npos && sum != std::string::npos) << line;
    EXPECT_LT(std::stod(line.substr(loss + 5)), 0.05) << "a model that gives 0 has a loss of 0.5";
    weights.insert(line.substr(sum));
  }
  EXPECT_EQ(weights.size(), 1U) << ended.output;
}

}  // namespace
}  // namespace syncopate::test
