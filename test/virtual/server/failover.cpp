// Servers that die in virtual time: the state of their replicas, and the fate of workers' updates.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/random.hpp"
#include "sanitized.hpp"
#include "syncopate/error.hpp"
#include "virtual/server/job.hpp"

namespace syncopate::server {
namespace {

constexpr std::uint64_t histories(std::uint64_t count) { return test::kSanitized ? (count + 4) / 5 : count; }

constexpr Clock kSteps = 28, kUpdated = 18;  // omitted values are sent in the steps after these
constexpr std::size_t kWorkers = 4;          // a power of two, so that every sum is exact

struct Case {
  const char *consistency, *codec, *answers;
};

/// Weight i belongs to worker i mod 4, whose every step adds exactly 1 to it. Servers die every 100 ms, links break.
JobOptions counting(const Case& tested, std::uint64_t seed) {
  JobOptions options{.setup = {.tables = {{"front", 37}, {"wide", 900}, {"bias", 1, true}},
                               .workers = kWorkers,
                               .servers = 2 + seed % 3,
                               .placement = "uniform",
                               .consistency = tested.consistency,
                               .coding = {.codec = tested.codec, .dense_below = 30},
                               .answers = tested.answers,
                               .optimizer = "sgd",
                               .hyperparameters = {{"weight_decay", 0}}},
                     .steps = kSteps,
                     .seed = seed};
  options.gradient = [](std::size_t worker, Clock step, std::size_t, std::span<float> gradient) {
    if (step >= kUpdated) return;
    for (std::size_t i = worker; i < gradient.size(); i += kWorkers) gradient[i] = -static_cast<float>(kWorkers);
  };
  options.compute_s = [seed](std::size_t worker, Clock step) {
    return 0.01 + 0.05 * base::CounterRandom{seed, worker, static_cast<std::uint64_t>(step)}.uniform(0);
  };
  options.break_every_s = 0.1;
  options.kill_every_s = 0.1;
  return options;
}

class Failover : public testing::TestWithParam<Case> {};

TEST_P(Failover, LosesNoAcknowledgedUpdateAndAppliesNoneTwice) {
  std::uint64_t kills = 0;
  for (std::uint64_t seed = 0; seed < histories(60); ++seed) {
    Job job(counting(GetParam(), seed));
    job.run();
    kills += job.kills;
    EXPECT_EQ(job.broken, std::vector<std::string>{}) << "seed " << seed;
    for (std::size_t worker = 0; worker < kWorkers; ++worker) {
      ASSERT_TRUE(job.has_finished(worker))
          << "seed " << seed << ": worker " << worker << " waits at step " << job.clock(worker);
      for (const auto& table : job.weights(worker))
        ASSERT_TRUE(std::ranges::all_of(table, [](float weight) { return weight == kUpdated; })) << "seed " << seed;
    }
  }
  EXPECT_GT(kills, histories(60));
}

/// In lockstep all workers compute a step with the same bits, even if packets omit values.
class FailoverInLockstep : public Failover {};

TEST_P(FailoverInLockstep, ShowsAllWorkersTheSameWeightsOfAStep) {
  for (std::uint64_t seed = 0; seed < histories(25); ++seed) {
    std::map<Clock, std::vector<std::vector<float>>> seen;
    std::size_t different = 0;
    JobOptions options = counting(GetParam(), seed);
    options.reads = [&](std::size_t, Clock step, std::span<const std::vector<float>> weights) {
      const auto [first, is_new] = seen.emplace(step, std::vector(weights.begin(), weights.end()));
      different += !is_new && !std::ranges::equal(first->second, weights) ? 1 : 0;
    };
    Job job(options);
    job.run();
    ASSERT_EQ(different, 0U) << "seed " << seed;
  }
}

TEST_P(Failover, OfServersAndADeadWorkerLeavesTheOthersGoingOn) {
  for (std::uint64_t seed = 0; seed < histories(25); ++seed) {
    JobOptions options = counting(GetParam(), seed);
    options.accidents[1] = {.at_s = 0.3};
    Job job(options);
    job.run();
    for (const std::size_t worker : {0, 2, 3}) {
      ASSERT_TRUE(job.has_finished(worker))
          << "seed " << seed << ": worker " << worker << " waits at step " << job.clock(worker);
      EXPECT_EQ(job.weights(worker), job.weights(0)) << "seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, FailoverInLockstep,
                         testing::Values(Case{"bsp", "none", "none"}, Case{"bsp", "none", "topk:0.1"}));

INSTANTIATE_TEST_SUITE_P(Tables, Failover,
                         testing::Values(Case{"bsp", "none", "none"}, Case{"bsp", "topk:0.2", "none"},
                                         Case{"bsp", "none", "topk:0.1"}, Case{"ssp:3", "none", "none"},
                                         Case{"ssp:3", "none", "topk:0.1"}, Case{"tap", "none", "none"},
                                         Case{"adaptive:0.1,5", "none", "none"}, Case{"dssp:1,4", "none", "none"}));

/// Rules whose state lies on the servers: a run with deaths ends with the bits of one without.
class FailoverOfState : public testing::TestWithParam<const char*> {};

TEST_P(FailoverOfState, EndsInTheBitsOfARunWithoutDeaths) {
  const bool is_joint = optim::rule_named(GetParam()).trust != nullptr;
  for (std::uint64_t seed = 0; seed < histories(is_joint ? 2 : 15); ++seed) {
    JobOptions options = counting({"bsp", "none", "none"}, seed);
    options.setup.optimizer = GetParam();
    options.setup.hyperparameters.clear();
    if (is_joint) {
      options.setup.placement = "lpt";
      options.setup.tables[1].elements = 300'000;  // two blocks, which step together
    }
    options.rate = 0.1;
    options.gradient = [](std::size_t worker, Clock step, std::size_t table, std::span<float> gradient) {
      const base::CounterRandom random{worker, static_cast<std::uint64_t>(step), table};
      std::array<float, 251> drawn;
      for (std::size_t i = 0; i < drawn.size(); ++i) drawn[i] = static_cast<float>(random.uniform(i) - 0.5);
      for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = drawn[i % drawn.size()];
    };
    Job dying(options);
    dying.run();
    options.kill_every_s = options.break_every_s = 0;
    Job whole(options);
    whole.run();
    for (std::size_t worker = 0; worker < kWorkers; ++worker) {
      ASSERT_TRUE(dying.has_finished(worker)) << "seed " << seed;
      ASSERT_EQ(dying.weights(worker), whole.weights(worker)) << "seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, FailoverOfState, testing::Values("sgd", "momentum", "adamw", "lars", "lamb"));

TEST(ALog, ForwardsNothingBeforeItsReplicaFollows) {
  std::vector<std::uint64_t> forwarded;
  Log log([](auto&&...) {}, [&](const Record& record) { forwarded.push_back(record.sequence); });
  log.append({.change = Push{}});
  EXPECT_FALSE(log.resume(0));
  log.append({.change = Push{}});
  EXPECT_EQ(forwarded, std::vector<std::uint64_t>{}) << "the replica could not interpret it";
  log.append({.change = change::SetUp{}});
  log.append({.change = change::Image{}});
  log.append({.change = Push{}});
  EXPECT_EQ(forwarded, (std::vector<std::uint64_t>{3, 4, 5}));
  log.acknowledge(4);
  log.pause();
  log.append({.change = Push{}});
  EXPECT_EQ(forwarded.size(), 3U) << "it is away";
  EXPECT_TRUE(log.resume(4));
  EXPECT_EQ(forwarded, (std::vector<std::uint64_t>{3, 4, 5, 5, 6}));
}

TEST(ALog, DropsWhatWaitsForAWorkerThatIsOnAnotherStream) {
  std::vector<std::size_t> sent;
  Log log([&](const Outgoing& outgoing) { sent.push_back(outgoing.worker); }, [](const Record&) {});
  log.append({.change = Push{}});
  log.send({.worker = 0});
  log.send({.worker = 1});
  log.forget(0);
  log.send({.worker = 0});
  log.acknowledge(1);
  EXPECT_EQ(sent, (std::vector<std::size_t>{1, 0}));
}

TEST(ALog, HoldsAnAnswerUntilTheReplicaHasAllRecordsBeforeIt) {
  std::vector<std::size_t> sent;
  Log log([&](const Outgoing& outgoing) { sent.push_back(outgoing.worker); }, [](const Record&) {});
  for (int made = 0; made < 3; ++made) log.append({.change = Push{}});
  log.send({.worker = 0});
  log.acknowledge(2);
  EXPECT_EQ(sent.size(), 0U);
  log.acknowledge(9);  // more than were made: only those count
  EXPECT_EQ(sent.size(), 1U);
  for (int made = 0; made < 3; ++made) log.append({.change = Push{}});
  log.send({.worker = 1});
  EXPECT_EQ(sent.size(), 1U);
  log.acknowledge(6);
  EXPECT_EQ(sent, (std::vector<std::size_t>{0, 1}));
}

/// The transfer of a server with one block, which worker 0 has filled.
std::vector<Record> transferred() {
  const server::Setup setup{.tables = {{"table", 4}}, .workers = 2, .optimizer = "adamw"};
  const std::string bytes = setup.bytes();
  const std::vector<float> weights{1, 2, 3, 4};
  ServerTables tables(0, 1 << 20, [](auto&&...) {});
  tables.receive(0, Hello{.is_new = true, .setup = {nullptr, std::as_bytes(std::span(bytes))}});
  tables.receive(0, FirstValues{.values = {nullptr, std::as_bytes(std::span(weights))}});
  tables.receive(0, Push{.last = 1, .rate = 1, .update = {nullptr, std::as_bytes(std::span(weights))}});
  std::vector<Record> records;
  EXPECT_TRUE(tables.hand_over([&](const Record& record) { records.push_back(record); }));
  return records;
}

TEST(Transfer, OfAnImageThatIsCutOffOrTooLongIsCorrupt) {
  const std::vector<Record> records = transferred();
  ASSERT_EQ(records.size(), 2U);
  const base::ConstBytes image = std::get<change::Image>(records[1].change).image.bytes;
  std::vector<std::byte> longer(image.begin(), image.end());
  longer.emplace_back();
  for (std::size_t length = 0; length <= longer.size(); ++length) {
    if (length == image.size()) continue;
    ServerTables replica(0, 1 << 20, [](auto&&...) {});
    EXPECT_EQ(replica.apply(records[0]), 0U);
    Record damaged = records[1];
    std::get<change::Image>(damaged.change).image = {nullptr, base::ConstBytes(longer).first(length)};
    EXPECT_THROW(replica.apply(damaged), Corrupt) << length;
    EXPECT_FALSE(replica.hand_over([](auto&&...) {})) << length;
  }
}

TEST(Transfer, RefusesRecordsOfBlocksAndWorkersThatAreNotThere) {
  const std::vector<Record> records = transferred();
  ServerTables replica(0, 1 << 20, [](auto&&...) {});
  for (const Record& record : records) replica.apply(record);
  const std::uint64_t next = records[1].sequence + 1;
  EXPECT_THROW(replica.apply({.sequence = next, .change = change::Leave{1}}), Corrupt);
  EXPECT_THROW(replica.apply({.sequence = next, .worker = 2, .change = change::Leave{}}), Corrupt);
  EXPECT_THROW(replica.apply({.sequence = next + 1, .change = change::Leave{}}), Corrupt);
}

}  // namespace
}  // namespace syncopate::server
