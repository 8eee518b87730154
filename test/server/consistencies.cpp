// Consistency: histories of workers that run by the rules alone keep the bound, end, and cut the traffic.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.hpp"
#include "server/history.hpp"
#include "syncopate/error.hpp"

namespace syncopate::server {
namespace {

/// Workers of different speeds, each slow now and then, and messages that take up to two steps.
Scenario drawn(std::uint64_t seed) {
  const base::CounterRandom random{seed};
  return {.workers = 1 + random.below(5, 0),
          .shards = 1 + random.below(3, 1),
          .steps = 40,
          .compute_s =
              [=](std::size_t worker, Clock step) {
                const auto counter = 1000 * (worker + 1) + static_cast<std::uint64_t>(step);
                return (0.2 + random.uniform(worker + 2)) * (random.uniform(counter) < 0.1 ? 8 : 1);
              },
          .delay_s = [=](std::uint64_t message) { return 2 * random.uniform(1'000'000 + message); },
          .significance =
              [=](std::size_t worker, Clock step, std::size_t shard) {
                return 0.02 * random.uniform(100'000 * (shard + 1) + 100 * worker + static_cast<std::uint64_t>(step));
              }};
}

/// Workers that take one second a step, multiplied by the factors of `slow`.
Scenario paced(std::size_t workers, Clock steps, std::function<double(std::size_t, Clock)> slow) {
  return {.workers = workers, .steps = steps, .compute_s = std::move(slow), .delay_s = [](auto) { return 1e-3; }};
}

/// Each of them takes five times as long for a tenth of its steps, at random.
Scenario stumbling() {
  const base::CounterRandom random{3};
  return paced(4, 1000, [=](std::size_t worker, Clock step) {
    return random.uniform(10'000 * worker + static_cast<std::uint64_t>(step)) < 0.1 ? 5.0 : 1.0;
  });
}

void expect_promises(const Rule& rule, const Scenario& scenario, std::string_view name, std::uint64_t seed) {
  const History history = history_of(rule, scenario);
  EXPECT_EQ(history.ended, std::vector<Clock>(scenario.workers, scenario.steps)) << name << " seed " << seed;
  for (const auto& applied : history.applied)
    EXPECT_EQ(applied, std::vector<Clock>(scenario.workers, scenario.steps)) << name << " seed " << seed;
  for (const Reading& reading : history.readings)
    for (const std::vector<Clock>& seen : reading.seen) {
      EXPECT_EQ(seen[reading.worker], reading.step) << "it reads its own writes: " << name << " seed " << seed;
      if (!rule.staleness) continue;
      EXPECT_GE(*std::ranges::min_element(seen), reading.step - *rule.staleness)
          << name << " seed " << seed << ": worker " << reading.worker << " at step " << reading.step;
    }
}

constexpr std::string_view kRules[] = {"bsp",   "tap",      "ssp:0",         "ssp:1",           "ssp",
                                       "ssp:7", "adaptive", "adaptive:10,2", "adaptive:1e-6,4", "adaptive:0.03,0"};

TEST(Consistency, OfEveryEntryBoundsStalenessReadsItsWritesAndNeverLocksUp) {
  for (const Consistency* entry : consistencies()) {
    const auto listed = [&](std::string_view rule) { return rule.substr(0, rule.find(':')) == entry->name; };
    EXPECT_TRUE(std::ranges::any_of(kRules, listed)) << entry->name << " is in no history";
  }
  for (const std::string_view name : kRules)
    for (std::uint64_t seed = 0; seed < 60; ++seed) expect_promises(rule_of(name), drawn(seed), name, seed);
}

TEST(Consistency, OfAnyEagernessKeepsTheBound) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const base::CounterRandom random{seed, 1};
    const Rule moody{.staleness = random.below(6, 0), .travels_early = [=](const Moment& moment) {
                       return random.uniform(static_cast<std::uint64_t>(10 * moment.own + moment.least)) < 0.3;
                     }};
    expect_promises(moody, drawn(seed), "moody", seed);
  }
}

TEST(Bsp, ComputesEachStepWithExactlyTheStepsBeforeIt) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Scenario scenario = drawn(seed);
    for (const Reading& reading : history_of(rule_of("bsp"), scenario).readings)
      for (const std::vector<Clock>& seen : reading.seen)
        EXPECT_EQ(seen, std::vector<Clock>(scenario.workers, reading.step)) << "seed " << seed;
  }
}

TEST(Bsp, SendsOneUpdateAStep) {
  const Scenario scenario = stumbling();
  EXPECT_DOUBLE_EQ(history_of(rule_of("bsp"), scenario).traffic(scenario), 1);
}

TEST(Tap, NeverWaits) {
  for (std::uint64_t seed = 0; seed < 60; ++seed)
    EXPECT_EQ(history_of(rule_of("tap"), drawn(seed)).waited_s(), 0) << "seed " << seed;
}

TEST(Tap, SendsOneUpdateAStep) {
  const Scenario scenario = stumbling();
  EXPECT_DOUBLE_EQ(history_of(rule_of("tap"), scenario).traffic(scenario), 1);
}

TEST(Tap, LeavesTheOthersTheirPaceWhenOneIsSlowForGood) {
  const Scenario scenario = paced(4, 100, [](std::size_t worker, Clock) { return worker == 0 ? 5.0 : 1.0; });
  const History tap = history_of(rule_of("tap"), scenario), bsp = history_of(rule_of("bsp"), scenario);
  EXPECT_NEAR(tap.ended_s[1], 100, 1);
  EXPECT_NEAR(bsp.ended_s[1], 496, 1) << "99 steps of five seconds, and one of its own";
  EXPECT_GT(tap.stalest(), 70) << "and nothing bounds what they miss of it";
}

TEST(Ssp, ExchangesOnceInStalenessPlusOneStepsAtEqualSpeeds) {
  for (const Clock staleness : {0, 1, 3, 5}) {
    const Scenario scenario = paced(4, 120, [](auto, auto) { return 1.0; });
    const History history = history_of(rule_of("ssp:" + std::to_string(staleness)), scenario);
    EXPECT_DOUBLE_EQ(history.traffic(scenario), 1.0 / static_cast<double>(staleness + 1)) << staleness;
    EXPECT_EQ(history.stalest(), staleness);
  }
}

TEST(Ssp, AbsorbsSlowStepsThatLockstepWaitsFor) {
  const Scenario scenario = stumbling();
  const History bsp = history_of(rule_of("bsp"), scenario), ssp = history_of(rule_of("ssp:5"), scenario);
  EXPECT_GT(bsp.seconds() / ssp.seconds(), 1.4);
  EXPECT_LT(ssp.traffic(scenario), 0.45);
}

TEST(Ssp, LetsTheSlowestSendWhatAnotherWaitsFor) {
  // Worker 0 takes ten seconds for its third step. Without a request it would withhold its first steps until its own
  // bound, at step 6, and worker 1 would wait for that.
  const Scenario scenario =
      paced(2, 6, [](std::size_t worker, Clock step) { return worker == 0 && step == 2 ? 10. : 1.; });
  const History history = history_of(rule_of("ssp:3"), scenario);
  const auto waited =
      std::ranges::find_if(history.readings, [](const Reading& r) { return r.worker == 1 && r.step == 4; });
  ASSERT_NE(waited, history.readings.end());
  EXPECT_NEAR(waited->waited_s, 8, 0.1) << "from 4 s to 12 s, when step 2 has ended";
}

TEST(Adaptive, SendsWhatIsSignificantAndHoldsBackWhatIsNot) {
  Scenario scenario = paced(2, 60, [](auto, auto) { return 1.0; });
  const auto traffic = [&](double each) {
    scenario.significance = [=](auto, auto, auto) { return each; };
    return history_of(rule_of("adaptive:0.01,5"), scenario).traffic(scenario);
  };
  EXPECT_DOUBLE_EQ(traffic(0.02), 1);
  EXPECT_DOUBLE_EQ(traffic(0.006), 0.5) << "two of them exceed 0.01";
  EXPECT_DOUBLE_EQ(traffic(0.01), 0.5) << "0.01 does not exceed 0.01";
  EXPECT_DOUBLE_EQ(traffic(0), 1.0 / 6) << "as ssp:5";
  EXPECT_DOUBLE_EQ(traffic(std::numeric_limits<double>::quiet_NaN()), 1);
}

TEST(Consistency, RefusesParametersThatAreNotAllowed) {
  for (const char* text : {"ssp:-1", "ssp:1.5", "ssp:", "ssp:x", "ssp:1,2", "ssp:1000001", "bsp:1", "tap:0",
                           "adaptive:-1,3", "adaptive:0.01,-1", "adaptive:0.01,2,3", "adaptive:nan", "sp", ""})
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
