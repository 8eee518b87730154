// Slots of workers: when a worker is given up, and when all have ended.
#include <gtest/gtest.h>

#include "server/process/candidates.hpp"
#include "set_clock.hpp"

namespace syncopate::server {
namespace {

using namespace std::chrono_literals;

class Silent final : public streams::Stream {
 public:
  void end() override {}
  void close(std::string_view) override {}
  [[nodiscard]] const streams::Identity& peer() const noexcept override { return peer_; }
  void send(std::uint64_t, base::ConstBytes, Payload) override {}

 private:
  const streams::Identity peer_{.role = streams::Identity::Role::worker};
};

/// A job of two workers, whose servers wait 10 s for one that is away.
class Slots : public testing::Test {
 protected:
  using Workers = std::vector<std::size_t>;

  std::shared_ptr<Candidate> arrive(std::size_t worker) {
    return candidates_.arrive(worker, std::make_unique<Silent>());
  }
  /// A process of that worker takes the slot. Returns its stream's number.
  std::uint64_t seat(const std::shared_ptr<Candidate>& candidate, std::uint64_t process = 1) {
    const auto life = candidates_.offer(candidate, Hello{.process = process});
    EXPECT_TRUE(life);
    return life.value_or(0);
  }
  Workers due_after(base::Duration time) {
    now_ += time;
    return slots_.due(2).given_up;
  }
  [[nodiscard]] bool have_ended() {
    return slots_.wait_for_end(0ms, [] { return std::size_t{2}; });
  }

  base::Time now_{100s};
  WorkerSlots slots_{10s, std::make_unique<test::SetClock>(now_)};
  Candidates candidates_{slots_, 1h, std::make_shared<test::SetClock>(now_)};
};

TEST_F(Slots, AWorkerThatNeverCameIsGivenUpAfterThePatience) {
  seat(arrive(0));
  EXPECT_EQ(due_after(0s), Workers{});
  EXPECT_EQ(due_after(9s), Workers{});
  EXPECT_EQ(due_after(1s), Workers{1});
  EXPECT_EQ(due_after(1s), Workers{}) << "once";
}

TEST_F(Slots, AProcessThatIsConnectedWhenTheJobBeginsIsAwaited) {
  const auto slow = arrive(1);
  now_ += 1h;
  seat(arrive(0));
  EXPECT_EQ(due_after(1h), Workers{});
  EXPECT_FALSE(candidates_.leave(*slow)) << "it had no slot";
  EXPECT_EQ(due_after(9s), Workers{});
  EXPECT_EQ(due_after(1s), Workers{1});
}

TEST_F(Slots, AProcessThatReplacesAWorkerExtendsThePatienceOnce) {
  seat(arrive(0));
  const std::uint64_t life = seat(arrive(1));
  EXPECT_EQ(due_after(1h), Workers{});
  EXPECT_TRUE(slots_.lose(1, life));
  EXPECT_EQ(due_after(9s), Workers{});
  auto replacement = arrive(1);
  EXPECT_EQ(due_after(9s), Workers{}) << "it loads its data";
  EXPECT_FALSE(candidates_.leave(*replacement));
  replacement = arrive(1);
  EXPECT_EQ(due_after(1s), Workers{1}) << "the others continue";
  seat(replacement, 2);
  EXPECT_EQ(due_after(1h), Workers{});
}

TEST_F(Slots, AProcessThatClaimsALiveWorkersPlaceIsDueWhenItIsRefused) {
  seat(arrive(0));
  EXPECT_EQ(candidates_.due().next, base::kNever);
  const auto other = arrive(0);
  EXPECT_FALSE(candidates_.offer(other, Hello{.process = 2}));
  const Candidates::Due waits = candidates_.due();
  EXPECT_TRUE(waits.refused.empty());
  EXPECT_EQ(waits.next, now_ + 1h);
  now_ += 1h;
  const Candidates::Due late = candidates_.due();
  ASSERT_EQ(late.refused.size(), 1U);
  EXPECT_EQ(late.refused.front(), other);
  EXPECT_EQ(late.next, base::kNever);
}

TEST_F(Slots, AWorkerThatIsRefusedHasThePatienceFromThenOn) {
  seat(arrive(0));
  const std::uint64_t life = seat(arrive(1));
  EXPECT_EQ(due_after(0s), Workers{});
  EXPECT_EQ(due_after(1h), Workers{});
  slots_.turn_away(1, life, Refuse{});
  EXPECT_EQ(due_after(9s), Workers{});
  EXPECT_EQ(due_after(1s), Workers{1});
}

TEST_F(Slots, AWorkerThatHasFinishedAndJoinsAgainIsAwaitedAndGivenUpAsEveryOther) {
  std::uint64_t life = 0;
  for (const std::size_t worker : {0, 1}) {
    life = seat(arrive(worker));
    slots_.mark_finished(worker);
  }
  EXPECT_TRUE(have_ended());
  EXPECT_FALSE(slots_.lose(1, life));
  EXPECT_EQ(due_after(1h), Workers{});
  life = seat(arrive(1), 2);
  EXPECT_FALSE(have_ended()) << "it trains again";
  EXPECT_TRUE(slots_.lose(1, life));
  EXPECT_EQ(due_after(9s), Workers{});
  EXPECT_EQ(due_after(1s), Workers{1});
  EXPECT_TRUE(have_ended());
}

}  // namespace
}  // namespace syncopate::server
