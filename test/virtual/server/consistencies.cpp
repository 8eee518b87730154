// Consistency models in histories of the production tables: they keep the bound, end, and cut the traffic.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/random.hpp"
#include "virtual/server/job.hpp"

namespace syncopate::virtual_server {
using namespace server;
namespace {

/// The weights of a worker's step: the least and the most of each worker's steps that any weight holds.
struct Seen {
  std::size_t worker = 0;
  Clock step = 0;
  double time_s = 0;
  std::vector<Clock> least{}, most{};
};

struct Played {
  std::vector<Seen> seen{};
  std::vector<double> took_s{};  ///< by worker: from the beginning of its first step to the end of its last one
  double traffic = 0;            ///< pushes per step, worker and block

  [[nodiscard]] double seconds() const { return *std::ranges::max_element(took_s); }
  [[nodiscard]] Clock stalest() const {
    Clock most = 0;
    for (const Seen& read : seen) most = std::max(most, read.step - *std::ranges::min_element(read.least));
    return most;
  }
};

Seen seen_in(std::span<const std::vector<float>> weights, std::size_t workers) {
  Seen seen{.least = std::vector<Clock>(workers, 1 << 30), .most = std::vector<Clock>(workers)};
  for (const auto& table : weights)
    for (std::size_t i = 0; i < table.size(); ++i) {
      Clock &least = seen.least[i % workers], &most = seen.most[i % workers];
      least = std::min(least, static_cast<Clock>(table[i]));
      most = std::max(most, static_cast<Clock>(table[i]));
    }
  return seen;
}

Setup setup_of(std::string_view consistency, std::size_t workers, std::size_t servers = 1) {
  return {.tables = {{"table", 16}},
          .workers = workers,
          .servers = servers,
          .consistency = std::string(consistency),
          .optimizer = "sgd",
          .hyperparameters = {{"weight_decay", 0}}};
}

/// Every worker ends all steps, and every update is applied once.
Played played(JobOptions options) {
  Played played{.took_s = std::vector<double>(options.setup.workers)};
  std::vector<double> began_s(options.setup.workers, -1);
  Job* playing = nullptr;
  options.reads = [&](std::size_t worker, Clock step, std::span<const std::vector<float>> weights) {
    Seen seen = seen_in(weights, options.setup.workers);
    seen.worker = worker;
    seen.step = step;
    if (began_s[worker] < 0) began_s[worker] = playing->now_s();
    seen.time_s = playing->now_s() - began_s[worker];
    played.took_s[worker] = seen.time_s + options.compute_s(worker, step);
    played.seen.push_back(std::move(seen));
  };
  Job job(options);
  playing = &job;
  job.run();
  job.check_end();
  EXPECT_EQ(job.broken, std::vector<std::string>{}) << options.setup.consistency << " seed " << options.seed;
  played.traffic = static_cast<double>(job.pushes) /
                   static_cast<double>(options.setup.workers * blocks_of(options.setup).size()) /
                   static_cast<double>(options.steps);
  return played;
}

/// Workers of different speeds, each slow now and then, and messages that take up to two steps.
JobOptions drawn(std::string_view consistency, std::uint64_t seed) {
  const base::CounterRandom random{seed};
  return {.setup = setup_of(consistency, 1 + random.below(5, 0), 1 + random.below(3, 1)),
          .steps = 40,
          .seed = seed,
          .compute_s =
              [=](std::size_t worker, Clock step) {
                const auto counter = 1000 * (worker + 1) + static_cast<std::uint64_t>(step);
                return (0.2 + random.uniform(worker + 2)) * (random.uniform(counter) < 0.1 ? 8 : 1);
              },
          .most_delay = 2s};
}

/// Workers that take these seconds for a step.
JobOptions paced(std::string_view consistency, std::size_t workers, Clock steps,
                 std::function<double(std::size_t, Clock)> compute_s) {
  return {
      .setup = setup_of(consistency, workers), .steps = steps, .compute_s = std::move(compute_s), .most_delay = 2ms};
}

/// Each of four takes five times as long for a tenth of its steps, at random.
JobOptions stumbling(std::string_view consistency) {
  const base::CounterRandom random{3};
  return paced(consistency, 4, 1000, [=](std::size_t worker, Clock step) {
    return random.uniform(10'000 * worker + static_cast<std::uint64_t>(step)) < 0.1 ? 5.0 : 1.0;
  });
}

constexpr std::string_view kRules[] = {"bsp",   "tap",      "ssp:0",         "ssp:1",           "ssp",
                                       "ssp:7", "adaptive", "adaptive:10,2", "adaptive:1e-6,4", "adaptive:0.03,0"};

TEST(Consistency, OfEveryEntryBoundsStalenessReadsItsWritesAndNeverLocksUp) {
  for (const Consistency* entry : consistencies()) {
    const auto listed = [&](std::string_view rule) { return rule.substr(0, rule.find(':')) == entry->name; };
    EXPECT_TRUE(std::ranges::any_of(kRules, listed)) << entry->name << " is in no history";
  }
  for (const std::string_view name : kRules)
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const auto staleness = rule_of(name).staleness;
      for (const auto& [worker, step, time_s, least, most] : played(drawn(name, seed)).seen) {
        EXPECT_EQ(least[worker], step) << "it reads its own writes: " << name << " seed " << seed;
        EXPECT_GE(*std::ranges::min_element(least), staleness ? step - *staleness : 0)
            << name << " seed " << seed << ": worker " << worker;
      }
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

JobOptions with_quorum(JobOptions options) {
  options.setup.catalogue = Catalogue::standard().with(kQuorum);
  return options;
}

TEST(LastStep, HoldsAWorkerUntilKOfNAreThereAndNeverLocksUp) {
  for (const std::size_t k : {1, 2, 3})
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      const JobOptions options = with_quorum(drawn(fmt::format("quorum:{},5", k), seed));
      for (const auto& [worker, step, time_s, least, most] : played(options).seen) {
        EXPECT_EQ(least[worker], step) << "it reads its own writes: seed " << seed;
        EXPECT_GE(*std::ranges::min_element(least), step - 5) << "seed " << seed;
        if (options.setup.servers > 1) continue;  // each block may have another quorum
        const auto there = std::ranges::count_if(least, [now = step](Clock steps) { return steps >= now; });
        EXPECT_GE(there, std::min(static_cast<std::ptrdiff_t>(k), std::ssize(least))) << "seed " << seed;
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
  JobOptions options = paced("by_table", 2, 30, [](std::size_t worker, Clock) { return worker == 0 ? 1.0 : 3.0; });
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

TEST(Bsp, SendsOneUpdateAStep) { EXPECT_DOUBLE_EQ(played(stumbling("bsp")).traffic, 1); }

TEST(Tap, NeverWaits) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const JobOptions options = drawn("tap", seed);
    std::vector<double> computed_s(options.setup.workers);
    for (const Seen& seen : played(options).seen) {
      EXPECT_NEAR(seen.time_s, computed_s[seen.worker], 1e-6) << "seed " << seed;
      computed_s[seen.worker] += options.compute_s(seen.worker, seen.step);
    }
  }
}

TEST(Tap, LeavesTheOthersTheirPaceWhenOneIsSlowForGood) {
  const auto slow = [](std::size_t worker, Clock) { return worker == 0 ? 5.0 : 1.0; };
  const Played tap = played(paced("tap", 4, 100, slow)), bsp = played(paced("bsp", 4, 100, slow));
  EXPECT_NEAR(tap.took_s[1], 100, 1);
  EXPECT_NEAR(bsp.took_s[1], 496, 1) << "99 steps of five seconds, and one of its own";
  EXPECT_GT(tap.stalest(), 70) << "and nothing bounds what they miss of it";
}

TEST(Ssp, ExchangesOnceInStalenessPlusOneStepsAtEqualSpeeds) {
  for (const Clock staleness : {0, 1, 3, 5}) {
    const Played ssp = played(paced("ssp:" + std::to_string(staleness), 4, 120, [](auto, auto) { return 1.0; }));
    EXPECT_DOUBLE_EQ(ssp.traffic, 1.0 / static_cast<double>(staleness + 1)) << staleness;
    EXPECT_EQ(ssp.stalest(), staleness);
  }
}

TEST(Ssp, AbsorbsSlowStepsThatLockstepWaitsFor) {
  const Played bsp = played(stumbling("bsp")), ssp = played(stumbling("ssp:5"));
  EXPECT_GT(bsp.seconds() / ssp.seconds(), 1.4);
  EXPECT_LT(ssp.traffic, 0.45);
}

TEST(Ssp, LetsTheSlowestSendWhatAnotherWaitsFor) {
  // Worker 0 takes ten seconds for its third step. Without a request it would withhold its first steps until its own
  // bound, at step 6, and worker 1 would wait for that.
  const Played ssp =
      played(paced("ssp:3", 2, 6, [](std::size_t worker, Clock step) { return worker == 0 && step == 2 ? 10. : 1.; }));
  const auto waited = std::ranges::find_if(ssp.seen, [](const Seen& s) { return s.worker == 1 && s.step == 4; });
  ASSERT_NE(waited, ssp.seen.end());
  EXPECT_NEAR(waited->time_s, 12, 0.1) << "when step 2 of worker 0 has ended";
}

}  // namespace
}  // namespace syncopate::virtual_server
