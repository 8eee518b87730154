// Consistency models in histories of the production tables: they keep the bound, end, and cut the traffic.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/random.hpp"
#include "laws/history.hpp"
#include "syncopate/testing.hpp"

namespace syncopate::laws {
namespace {

using server::blocks_of, server::Clock, server::ClockView, server::consistencies;

/// Every worker ends all steps and has every update once.
History played(const HistoryOptions& options) {
  History history = history_of(options);
  EXPECT_EQ(history.finished, std::vector<bool>(options.setup.workers, true)) << options.setup.consistency;
  return history;
}

double seconds(const History& history) { return std::ranges::max(history.took_s); }

Clock stalest(const History& history) {
  Clock most = 0;
  for (const Seen& read : history.seen) most = std::max(most, read.step - std::ranges::min(read.least));
  return most;
}

/// Pushes per step, worker and block.
double traffic(const HistoryOptions& options, const History& history) {
  return static_cast<double>(history.pushes) /
         static_cast<double>(options.setup.workers * blocks_of(options.setup).size()) /
         static_cast<double>(options.steps);
}

HistoryOptions drawn(std::string_view consistency, std::uint64_t seed) {
  return drawn_history(std::string(consistency), {}, seed, 40);
}

/// Workers that take these seconds for a step.
HistoryOptions paced(std::string_view consistency, std::size_t workers, Clock steps,
                     std::function<double(std::size_t, Clock)> compute_s) {
  return {.setup = {.tables = {{"table", 16}},
                    .workers = workers,
                    .consistency = std::string(consistency),
                    .optimizer = "sgd",
                    .hyperparameters = {{"weight_decay", 0}}},
          .steps = steps,
          .compute_s = std::move(compute_s),
          .most_delay_s = 0.002};
}

/// Each of four takes five times as long for a tenth of its steps, at random.
HistoryOptions stumbling(std::string_view consistency) {
  const base::CounterRandom random{3};
  return paced(consistency, 4, 1000, [=](std::size_t worker, Clock step) {
    return random.uniform(10'000 * worker + static_cast<std::uint64_t>(step)) < 0.1 ? 5.0 : 1.0;
  });
}

/// Models of the shelf, and the bound that each promises.
constexpr struct {
  std::string_view model, parameter;
  std::optional<Clock> bound;
} kPromised[] = {{"bsp", "", 0},          {"tap", "", {}},           {"ssp", "0", 0},          {"ssp", "1", 1},
                 {"ssp", "", 3},          {"ssp", "7", 7},           {"dssp", "", 15},         {"dssp", "0,4", 4},
                 {"dssp", "2,2", 2},      {"essp", "", 3},           {"essp", "1", 1},         {"gaia", "", 5},
                 {"gaia", "0.3,2", 2},    {"gaia", "10,3", 3},       {"gaia", "0.5,0", 0},     {"adaptive", "", 5},
                 {"adaptive", "10,2", 2}, {"adaptive", "1e-6,4", 4}, {"adaptive", "0.03,0", 0}};

TEST(Consistency, OfEveryEntryObeysItsLaws) {
  for (const Consistency* entry : consistencies())
    EXPECT_TRUE(std::ranges::any_of(kPromised, [&](const auto& row) { return row.model == entry->name; }))
        << entry->name << " is in no history";
  const std::vector<const Consistency*> entries = Catalogue().consistencies();
  for (const auto& [model, parameter, bound] : kPromised) {
    const auto entry = std::ranges::find(entries, model, &Consistency::name);
    ASSERT_NE(entry, entries.end()) << model;
    const auto broken =
        check_consistency(**entry, {.parameter = std::string(parameter), .bound = bound, .histories = 60});
    EXPECT_FALSE(broken) << broken->text;
  }
}

/// The last step that K of the workers have ended, and at most S beyond the slowest.
Rule quorum_rule(std::span<const double> numbers) {
  const auto k = static_cast<std::size_t>(numbers[0]);
  return {.last_step = [k, most = static_cast<Clock>(numbers[1])](const ServerView& view) {
    std::vector<Clock> clocks(view.clocks.begin(), view.clocks.end());
    std::ranges::sort(clocks, std::greater());
    return std::min(clocks[std::min(k, clocks.size()) - 1], view.least + most);
  }};
}
constexpr Parameter kQuorumParameters[] = {{"workers", 0, 100, true}, {"steps", 0, 1000, true}};
constexpr Consistency kQuorum{
    .name = "quorum", .parameter = "2,5", .parameters = kQuorumParameters, .rule = quorum_rule};

HistoryOptions with_quorum(HistoryOptions options) {
  options.setup.catalogue = Catalogue::standard().with(kQuorum);
  return options;
}

TEST(LastStep, ObeysTheLawsAndHoldsAWorkerUntilKOfNAreThere) {
  for (const std::size_t k : {1, 2, 3}) {
    const std::string parameter = fmt::format("{},5", k);
    const auto broken = check_consistency(kQuorum, {.parameter = parameter, .bound = 5, .histories = 30});
    EXPECT_FALSE(broken) << broken->text;
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      HistoryOptions options = with_quorum(drawn("quorum:" + parameter, seed));
      options.setup.servers = 1;  // each block has its own quorum
      options.setup.tables.resize(1);
      for (const Seen& seen : played(options).seen) {
        const auto there = std::ranges::count_if(seen.least, [&](Clock steps) { return steps >= seen.step; });
        EXPECT_GE(there, std::min(static_cast<std::ptrdiff_t>(k), std::ssize(seen.least))) << "seed " << seed;
      }
    }
  }
}

TEST(LastStep, OfAllWorkersIsABarrierAndOfTwoDoesNotWaitForTheSlowest) {
  const auto seconds = [](std::string_view model) {
    return played(with_quorum(paced(model, 4, 50, [](std::size_t worker, Clock) { return worker == 3 ? 3.0 : 1.0; })))
        .took_s[0];
  };
  EXPECT_NEAR(seconds("quorum:4,1000"), seconds("bsp"), 4) << "a barrier";
  EXPECT_LT(seconds("quorum:2,1000"), 52);
  EXPECT_GT(seconds("quorum:2,5"), 3 * (50 - 5 - 2)) << "at most five steps beyond the slowest";
}

TEST(LastStep, MayDependOnTheTable) {
  static constexpr Consistency kByTable{
      .name = "by_table", .rule = [](std::span<const double>) {
        return Rule{.last_step = [](const ServerView& view) { return view.least + (view.table == 0 ? 6 : 0); }};
      }};
  HistoryOptions options = paced("by_table", 2, 30, [](std::size_t worker, Clock) { return worker == 0 ? 1.0 : 3.0; });
  options.setup.catalogue = Catalogue::standard().with(kByTable);
  EXPECT_LT(played(options).took_s[0], 3 * (30 - 5)) << "six steps beyond the slow worker";
  options.setup.tables.push_back({"strict", 16});
  EXPECT_GT(played(options).took_s[0], 3 * (30 - 2)) << "its other table waits for the slow worker";
}

TEST(Bsp, ComputesEachStepWithExactlyTheStepsBeforeIt) {
  for (std::uint64_t seed = 0; seed < 60; ++seed)
    for (const Seen& seen : played(drawn("bsp", seed)).seen) {
      EXPECT_EQ(seen.least, std::vector<Clock>(seen.least.size(), seen.step)) << "seed " << seed;
      EXPECT_EQ(seen.most, seen.least) << "seed " << seed;
    }
}

TEST(Bsp, SendsOneUpdateAStep) {
  const HistoryOptions options = stumbling("bsp");
  EXPECT_DOUBLE_EQ(traffic(options, played(options)), 1);
}

TEST(Tap, NeverWaits) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const HistoryOptions options = drawn("tap", seed);
    std::vector<double> computed_s(options.setup.workers);
    for (const Seen& seen : played(options).seen) {
      EXPECT_NEAR(seen.time_s, computed_s[seen.worker], 1e-6) << "seed " << seed;
      computed_s[seen.worker] += options.compute_s(seen.worker, seen.step);
    }
  }
}

TEST(Tap, LeavesTheOthersTheirPaceWhenOneIsSlowForGood) {
  const auto slow = [](std::size_t worker, Clock) { return worker == 0 ? 5.0 : 1.0; };
  const History tap = played(paced("tap", 4, 100, slow)), bsp = played(paced("bsp", 4, 100, slow));
  EXPECT_NEAR(tap.took_s[1], 100, 1);
  EXPECT_NEAR(bsp.took_s[1], 496, 1) << "99 steps of five seconds, and one of its own";
  EXPECT_GT(stalest(tap), 70) << "and nothing bounds what they miss of it";
}

TEST(Ssp, ExchangesOnceInStalenessPlusOneStepsAtEqualSpeeds) {
  for (const Clock staleness : {0, 1, 3, 5}) {
    const auto options = paced("ssp:" + std::to_string(staleness), 4, 120, [](auto, auto) { return 1.0; });
    const History ssp = played(options);
    EXPECT_DOUBLE_EQ(traffic(options, ssp), 1.0 / static_cast<double>(staleness + 1)) << staleness;
    EXPECT_EQ(stalest(ssp), staleness);
  }
}

TEST(Ssp, AbsorbsSlowStepsThatLockstepWaitsFor) {
  const History bsp = played(stumbling("bsp")), ssp = played(stumbling("ssp:5"));
  EXPECT_GT(seconds(bsp) / seconds(ssp), 1.4);
  EXPECT_LT(traffic(stumbling("ssp:5"), ssp), 0.45);
}

/// In a tenth of the steps one of four workers, drawn each time, takes five times as long.
HistoryOptions interrupted(std::string_view consistency) {
  const base::CounterRandom random{3};
  return paced(consistency, 4, 1000, [=](std::size_t worker, Clock step) {
    const auto number = static_cast<std::uint64_t>(step);
    return random.uniform(number) < 0.1 && random.below(4, 10'000 + number) == worker ? 5.0 : 1.0;
  });
}

double mean_staleness(const History& history) {
  double sum = 0;
  for (const Seen& read : history.seen) sum += static_cast<double>(read.step - std::ranges::min(read.least));
  return sum / static_cast<double>(history.seen.size());
}

TEST(Dssp, KeepsItsLowBoundAtEqualSpeeds) {
  EXPECT_LE(stalest(played(paced("dssp:2,8", 4, 200, [](auto, auto) { return 1.0; }))), 2);
}

TEST(Essp, IsFresherThanUpdatesInEveryStepAlone) {
  const History asked = played(stumbling("adaptive:0,5")), essp = played(stumbling("essp:5"));
  EXPECT_LT(mean_staleness(essp), 0.9 * mean_staleness(asked)) << mean_staleness(asked);
  EXPECT_LT(seconds(essp), 1.02 * seconds(asked));
  EXPECT_DOUBLE_EQ(traffic(stumbling("essp:5"), essp), traffic(stumbling("adaptive:0,5"), asked)) << "pushes";
}

/// The most steps by which weights of one worker differ within a read.
Clock spread_of(const History& history) {
  Clock most = 0;
  for (const Seen& read : history.seen)
    for (std::size_t worker = 0; worker < read.least.size(); ++worker)
      most = std::max(most, read.most[worker] - read.least[worker]);
  return most;
}

TEST(Gaia, SendsTheSignificantElementsAndTheOthersWithinItsBound) {
  // A weight of n steps gets 1 in each: significant up to step 1/theta, then in each 1 + n theta steps.
  EXPECT_LE(spread_of(played(stumbling("gaia:0,5"))), 5);
  for (const char* model : {"gaia:0.02,8", "gaia:0.02,2"}) {
    const History history = played(stumbling(model));
    EXPECT_LE(stalest(history), model[10] - '0') << model;
  }
}

/// Sends every second element early, so that the steps of a worker's elements differ.
constexpr Consistency kEven{.name = "even", .rule = [](std::span<const double>) {
                              return Rule{.staleness = 4,
                                          .travels_early = [](const ClockView&) { return true; },
                                          .part =
                                              [](const ClockView&, std::span<const float> weights,
                                                 std::span<const float> update, std::span<float> sent) {
                                                EXPECT_EQ(weights.size(), update.size());
                                                for (std::size_t i = 0; i < update.size(); i += 8)
                                                  for (std::size_t j = i; j < std::min(i + 4, update.size()); ++j)
                                                    sent[j] = update[j];
                                              }};
                            }};

TEST(APart, TravelsEarlyAndTheRestWhenAnotherWorkerRequiresIt) {
  const auto broken = check_consistency(kEven, {.bound = 4});
  EXPECT_FALSE(broken) << broken->text;
  HistoryOptions options = stumbling("even");
  options.setup.catalogue = Catalogue::standard().with(kEven);
  const History history = played(options);
  EXPECT_LE(stalest(history), 4);
  EXPECT_GE(spread_of(history), 3) << "elements of one worker arrive at different times";
}

TEST(Clocks, OfAllWorkersAreKnownToAModelThatSeesThem) {
  // Only the slow worker's clock lets the others send: they see it pass every fourth step.
  static std::vector<Clock> seen;
  static constexpr Consistency kSees{.name = "sees", .rule = [](std::span<const double>) {
                                       return Rule{.staleness = 6,
                                                   .travels_early =
                                                       [](const ClockView& view) {
                                                         seen.assign(view.clocks.begin(), view.clocks.end());
                                                         for (const Clock clock : seen) EXPECT_LE(clock, view.own + 40);
                                                         return !seen.empty() && std::ranges::min(seen) % 4 == 3;
                                                       },
                                                   .sees_clocks = true};
                                     }};
  const auto broken = check_consistency(kSees, {.bound = 6});
  EXPECT_FALSE(broken) << broken->text;
  HistoryOptions options = paced("sees", 3, 40, [](std::size_t worker, Clock) { return worker == 2 ? 2.0 : 1.0; });
  options.setup.catalogue = Catalogue::standard().with(kSees);
  const History history = played(options);
  ASSERT_EQ(seen.size(), 3U);
  for (const Clock clock : seen) EXPECT_GT(clock, 25);
  EXPECT_GT(history.pushes, played(paced("ssp:6", 3, 40, options.compute_s)).pushes);
}

struct Paid {
  double step_s = 0, staleness = 0;  ///< means
};

/// Recorded in the output of the test under the name of the model.
Paid paid(const HistoryOptions& options) {
  const History history = played(options);
  const Paid paid{seconds(history) / static_cast<double>(options.steps), mean_staleness(history)};
  testing::Test::RecordProperty(options.setup.consistency, fmt::format("{:.2f}, {:.1f}", paid.step_s, paid.staleness));
  return paid;
}

// "adaptive:0,S" is a fixed bound with updates every step, as dssp sends them.

TEST(Dssp, TakesABoundBetweenItsLimitsWhereWorkersAreInterrupted) {
  const Paid low = paid(interrupted("adaptive:0,2")), high = paid(interrupted("adaptive:0,8"));
  const Paid middle = paid(interrupted("adaptive:0,4")), dssp = paid(interrupted("dssp:2,8"));
  EXPECT_LT(dssp.step_s, 0.98 * low.step_s);
  EXPECT_LT(dssp.staleness, 0.7 * high.staleness);
  EXPECT_NEAR(dssp.step_s, middle.step_s, 0.02 * middle.step_s) << "a fixed bound of 4 is as good";
  EXPECT_NEAR(dssp.staleness, middle.staleness, 0.1 * middle.staleness);
}

TEST(Dssp, IsLessStaleThanItsHighBoundWhereOneWorkerIsSlowForGood) {
  const auto slow = [](std::string_view model) {
    return paid(paced(model, 4, 1000, [](std::size_t worker, Clock) { return worker == 0 ? 2.0 : 1.0; }));
  };
  const Paid low = slow("adaptive:0,2"), middle = slow("adaptive:0,4"), high = slow("adaptive:0,8");
  const Paid dssp = slow("dssp:2,8");
  for (const Paid& model : {low, middle, high, dssp}) EXPECT_NEAR(model.step_s, 2, 0.02) << "the slow worker's pace";
  EXPECT_GT(dssp.staleness, low.staleness);
  EXPECT_LT(dssp.staleness, 0.6 * high.staleness) << "its updates are near when the others stop";
}

/// How long worker 0 waited before each step, in paced steps of a second.
std::vector<double> waits_s(const History& history) {
  std::vector<double> waits;
  double ended_s = 0;
  for (const Seen& read : history.seen) {
    if (read.worker != 0) continue;
    waits.push_back(read.time_s - ended_s);
    ended_s = read.time_s + 1;
  }
  return waits;
}

TEST(Dssp, StopsWhereTheSlowestWorkersNextUpdateIsNear) {
  // Updates of worker 1 come at 2.6, 5.2, 7.8, 10.4, 13.0, ...; its pace is known from the first one. At 3.6 four more
  // steps, to 7.6, end nearest before one of them; at 7.8 five more, to 12.8.
  const auto waits =
      waits_s(played(paced("dssp:1,9", 2, 12, [](std::size_t worker, Clock) { return worker == 0 ? 1.0 : 2.6; })));
  ASSERT_EQ(waits.size(), 12U);
  for (std::size_t step = 0; step < waits.size(); ++step)
    EXPECT_NEAR(waits[step], step == 2 ? 0.6 : step == 7 ? 0.2 : 0, 0.01) << step;
}

TEST(Ssp, LetsTheSlowestSendWhatAnotherWaitsFor) {
  // Worker 0 takes ten seconds for its third step. Without a request it would withhold its first steps until its own
  // bound, at step 6, and worker 1 would wait for that.
  const History ssp =
      played(paced("ssp:3", 2, 6, [](std::size_t worker, Clock step) { return worker == 0 && step == 2 ? 10. : 1.; }));
  const auto waited = std::ranges::find_if(ssp.seen, [](const Seen& s) { return s.worker == 1 && s.step == 4; });
  ASSERT_NE(waited, ssp.seen.end());
  EXPECT_NEAR(waited->time_s, 12, 0.1) << "when step 2 of worker 0 has ended";
}

}  // namespace
}  // namespace syncopate::laws
