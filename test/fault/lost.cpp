// Lost ranks: every other rank names a rank that is killed or stopped in the middle of a step, within the limit.
#include <gtest/gtest.h>

#include <random>

#include "processes.hpp"
#include "random/draw.hpp"
#include "sanitized.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate {
namespace {

constexpr int kRanks = 4;

/// A step whose exchange takes a few milliseconds, so that a random moment falls into it.
void reduce_some(Group& group, int /*step*/) {
  static std::vector<float> gradient(600'000, 1.0F);
  allreduce(group, std::span(gradient), {.op = ReduceOp::average, .name = "gradient"});
}

/// A step in memory where ranks write each other's sums.
void reduce_in_place(Group& group, int /*step*/) {
  constexpr std::size_t kElements = 600'000;
  static const auto memory = group.allocate<float>(kElements);
  allreduce(group, std::span(memory.get(), kElements), {.op = ReduceOp::average, .name = "gradient"});
}

void expect_everyone_names(const test::Job& job, int victim, std::int64_t since_ns, double bound_s) {
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == victim) continue;
    const test::Ending ending = job.ending_of(rank);
    EXPECT_STREQ(ending.kind, "PeerLost") << "rank " << rank << ": " << ending.message;
    EXPECT_EQ(ending.rank, rank) << ending.message;
    EXPECT_EQ(ending.peer, victim) << "rank " << rank << ": " << ending.message;
    EXPECT_TRUE(std::string(ending.operation).starts_with("allreduce f32 x 600000 average 'gradient'"))
        << ending.message;
    EXPECT_STREQ(ending.tensor, "gradient") << ending.message;
    EXPECT_LE(static_cast<double>(ending.at_ns - since_ns) * 1e-9, bound_s) << "rank " << rank;
  }
}

/// Lets the job run a random while, then sends `signal` to `victim`.
std::int64_t strike(const test::Job& job, int victim, int signal, std::mt19937& random) {
  const int steps = std::uniform_int_distribution(3, 30)(random);
  EXPECT_TRUE(job.await_steps((victim + 1) % kRanks, steps)) << job.ending_of((victim + 1) % kRanks).message;
  const std::int64_t at_ns = test::now_ns();
  job.signal(victim, signal);
  return at_ns;
}

class Victim : public testing::TestWithParam<std::tuple<int, const char*>> {
 protected:
  [[nodiscard]] static int victim() { return std::get<0>(GetParam()); }
  [[nodiscard]] static test::Job job() {
    const std::string where = std::get<1>(GetParam());
    return where == "memory" ? test::Job(kRanks, reduce_in_place, {.transport = "shm"})
                             : test::Job(kRanks, reduce_some, {.transport = where});
  }
  std::mt19937 random_{static_cast<unsigned>(test::number_from("SYNCOPATE_SEED", 1))};
};

// The limits are guarantees, not speeds: 2 s for a death (usually milliseconds), 3 s for silence (2 s of it plus
// notice).
TEST_P(Victim, WhoIsKilledIsNamedByEveryOtherRank) {
  const test::Job job = Victim::job();
  const std::int64_t since_ns = strike(job, victim(), SIGKILL, random_);
  expect_everyone_names(job, victim(), since_ns, 2.0);
}

TEST_P(Victim, WhoIsStoppedIsNamedByEveryOtherRank) {
  const test::Job job = Victim::job();
  const std::int64_t since_ns = strike(job, victim(), SIGSTOP, random_);
  expect_everyone_names(job, victim(), since_ns, 3.0);
}

TEST_P(Victim, WhoWasStoppedLearnsOfItWhenItGoesOn) {
  const test::Job job = Victim::job();
  const std::int64_t since_ns = strike(job, victim(), SIGSTOP, random_);
  expect_everyone_names(job, victim(), since_ns, 3.0);
  job.signal(victim(), SIGCONT);
  EXPECT_STRNE(job.ending_of(victim()).kind, "none");
}

INSTANTIATE_TEST_SUITE_P(Rank, Victim,
                         testing::Combine(testing::Range(0, test::kSanitized ? 2 : kRanks),
                                          testing::Values("memory", "shm", "tcp")),
                         [](const auto& one) {
                           return std::string(std::get<1>(one.param)) + std::to_string(std::get<0>(one.param));
                         });

/// Rank 0 leaves during a broadcast that rank 1 does not forward: rank 1 dies, or stops, after it has begun.
TEST(Failure, BehindAnInnerRankThatHasLeftIsNamed) {
  for (const char* transport : {"tcp", "shm"})
    for (const int signal : {SIGKILL, SIGSTOP}) {
      const test::Job job(
          3,
          [signal](Group& group, int step) {
            if (step == 0) return barrier(group);
            if (group.rank() == 1) ::raise(signal);
            std::vector<float> values(1000);
            broadcast(group, std::span(values), {.root = 0, .algorithm = "linear_pipeline", .name = "weights"});
          },
          {.transport = transport, .leaves = [](int rank, int step) { return rank == 0 && step == 2; }});
      const test::Ending ending = job.ending_of(2);
      EXPECT_STREQ(ending.kind, "PeerLost") << transport << ' ' << signal << ' ' << ending.message;
      EXPECT_EQ(ending.peer, 1) << ending.message;
    }
}

TEST(Failure, OfARankWithAForkedChildIsSeenAtOnce) {
  for (const char* transport : {"tcp", "shm"}) {
    const test::Job job(kRanks,
                        [](Group& group, int step) {
                          if (group.rank() == 1 && step == 1 && ::fork() == 0) {
                            for (const int file : {STDOUT_FILENO, STDERR_FILENO})
                              ::close(file);  // unblocks readers that wait for their end
                            ::alarm(10);
                            ::pause();
                          }
                          reduce_some(group, step);
                        },
                        {.transport = transport});
    EXPECT_TRUE(job.await_steps(1, 3));
    job.signal(1, SIGKILL);
    for (const int rank : {0, 2, 3}) {
      const test::Ending ending = job.ending_of(rank);
      EXPECT_STREQ(ending.kind, "PeerLost") << ending.message;
      EXPECT_EQ(std::string(ending.message).find("no heartbeat"), std::string::npos) << ending.message;
    }
  }
}

TEST(Failure, OfOneRankIsToldToAll) {
  const test::Job job(kRanks, [](Group& group, int step) {
    if (group.rank() == 2 && step == 5) throw Corrupt("shard 7 is damaged", {.rank = 2});
    reduce_some(group, step);
  });
  EXPECT_STREQ(job.ending_of(2).kind, "Corrupt");
  for (const int rank : {0, 1, 3}) {
    const test::Ending ending = job.ending_of(rank);
    EXPECT_STREQ(ending.kind, "RemoteFailure") << ending.message;
    EXPECT_EQ(ending.peer, 2) << ending.message;
  }
}

TEST(Failure, ToldByAbortKeepsItsReason) {
  const test::Job job(kRanks, [](Group& group, int step) {
    if (group.rank() == 1 && step == 5) {
      group.abort("the loss is not a number", "fc1");
      throw Corrupt("the loss is not a number");
    }
    reduce_some(group, step);
  });
  for (const int rank : {0, 2, 3}) {
    const test::Ending ending = job.ending_of(rank);
    EXPECT_STREQ(ending.kind, "RemoteFailure");
    EXPECT_NE(std::string(ending.message).find("the loss is not a number"), std::string::npos) << ending.message;
  }
}

TEST(Failure, OfOneRanksProgramIsAMismatchThatNamesBothCalls) {
  const test::Job job(kRanks, [](Group& group, int step) {
    std::vector<float> values(group.rank() == 3 && step == 4 ? 99 : 100);
    allreduce(group, std::span(values), {.name = "fc1"});
  });
  for (int rank = 0; rank < kRanks; ++rank) {
    const test::Ending ending = job.ending_of(rank);
    EXPECT_STREQ(ending.kind, "Mismatch") << ending.message;
    EXPECT_NE(std::string(ending.message).find("f32 x 99"), std::string::npos) << ending.message;
    EXPECT_NE(std::string(ending.message).find("f32 x 100"), std::string::npos) << ending.message;
  }
}

}  // namespace
}  // namespace syncopate
