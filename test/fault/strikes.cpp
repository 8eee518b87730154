// Strikes: kills and stops at random moments; survivors name a victim in time, and every value is right.
#include <gtest/gtest.h>

#include <cstdio>

#include "fault/strike.hpp"
#include "sanitized.hpp"

namespace syncopate {
namespace {

class Signal : public testing::TestWithParam<int> {
 protected:
  static void strike(std::uint64_t seed) {
    const test::Strike strike = test::draw_strike(seed, GetParam());
    const test::Outcome outcome = outcome_of(strike);
    for (const std::string& flaw : outcome.flaws)
      ADD_FAILURE() << text_of(strike) << "\n  " << flaw << "\n  "
                    << test::replay("test_fault", GetParam() == SIGKILL ? "*/Signal.*/kill" : "*/Signal.*/stop", seed);
    for (const double latency_s : outcome.latencies_s) {
      EXPECT_LE(latency_s, strike.bound_s()) << text_of(strike);
      if (std::getenv("SYNCOPATE_LATENCIES") != nullptr) std::printf("latency %.6f\n", latency_s);
    }
  }
};

TEST_P(Signal, AtAnyMomentIsNamedByEverySurvivorAndNoValueIsWrong) {
  const std::size_t usual = GetParam() == SIGKILL ? 40 : 4;
  for (const std::uint64_t seed : test::seeds(test::kSanitized ? usual / 4 : usual)) strike(seed);
}

INSTANTIATE_TEST_SUITE_P(To, Signal, testing::Values(SIGKILL, SIGSTOP),
                         [](const auto& one) { return one.param == SIGKILL ? "kill" : "stop"; });

}  // namespace
}  // namespace syncopate
