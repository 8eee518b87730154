// Consistency: the rules by name, and what a rule counts as significant.
#include <gtest/gtest.h>

#include <limits>

#include "server/consistency.hpp"
#include "syncopate/error.hpp"

namespace syncopate::server {
namespace {

TEST(Adaptive, SendsEarlyWhatIsSignificant) {
  const Rule rule = rule_of("adaptive:0.01,5");
  const auto sends = [&](double significance) { return travels(rule, {.own = 1, .significance = significance}); };
  EXPECT_TRUE(sends(0.011));
  EXPECT_FALSE(sends(0.01)) << "0.01 does not exceed 0.01";
  EXPECT_FALSE(sends(0));
  EXPECT_TRUE(sends(std::numeric_limits<double>::quiet_NaN()));
}

TEST(Consistency, RefusesParametersThatAreNotAllowed) {
  for (const char* text :
       {"ssp:-1", "ssp:1.5", "ssp:", "ssp:x", "ssp:1,2", "ssp:1000001", "bsp:1", "tap:0", "adaptive:-1,3", "dssp:5,3",
        "dssp:1,1001", "dssp:1.5", "adaptive:0.01,-1", "adaptive:0.01,2,3", "adaptive:nan", "sp", ""})
    EXPECT_THROW(static_cast<void>(rule_of(text)), Misuse) << text;
  EXPECT_EQ(rule_of("ssp").staleness, rule_of("ssp:3").staleness);
  EXPECT_EQ(rule_of("adaptive:0.5").staleness, 5) << "an omitted value is the default's";
}

TEST(Consistency, NamesTheParameterItsValueAndWhatIsAllowed) {
  try {
    static_cast<void>(rule_of("adaptive:0.01,2.5"));
    FAIL() << "no error";
  } catch (const Misuse& misuse) {
    EXPECT_EQ(
        std::string(misuse.what()),
        "consistency 'adaptive:0.01,2.5': staleness is '2.5'; allowed: 0, and whole numbers above 0, at most 1000000");
  }
}

}  // namespace
}  // namespace syncopate::server
