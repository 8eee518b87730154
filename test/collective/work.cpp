// Operations under way: waiting with a bound, callbacks, and a start that gets no thread.
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <latch>

#include "ranks.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

/// Two ranks in this process, used by one thread: what rank 0 starts ends when rank 1's part is started.
struct Pair {
  std::vector<std::unique_ptr<Group>> groups = Group::threads(2, {.timeout = 20s});
  std::vector<float> here{1}, there{2};
  [[nodiscard]] Work start_here() { return start(*groups[0], Collective::allreduce, std::span(here)); }
  [[nodiscard]] Work start_there() { return start(*groups[1], Collective::allreduce, std::span(there)); }
};

TEST(Work, IsWaitedForWithinABound) {
  Pair pair;
  const Work here = pair.start_here();
  EXPECT_FALSE(here.wait_for(1ms)) << "the other rank has not called it";
  EXPECT_FALSE(here.wait_for(0ms));
  EXPECT_FALSE(here.ready());
  const Work there = pair.start_there();
  EXPECT_TRUE(here.wait_for(20s));
  EXPECT_TRUE(there.wait_for(std::chrono::nanoseconds::max())) << "no bound overflows";
  EXPECT_TRUE(here.ready());
  EXPECT_EQ(pair.here[0], 3);
}

TEST(Work, ThatFailedThrowsFromEveryWaitAndTellsItsCallback) {
  Pair pair;
  const Work here = pair.start_here();
  std::latch called(1);
  here.then([&](const std::exception_ptr& error) {
    ASSERT_TRUE(error);
    EXPECT_THROW(std::rethrow_exception(error), RemoteFailure);
    called.count_down();
  });
  pair.groups[1]->abort("enough");
  EXPECT_THROW(here.wait(), RemoteFailure);
  EXPECT_THROW(static_cast<void>(here.wait_for(0ms)), RemoteFailure);
  called.wait();
}

TEST(Work, CallsBackOnTheGroupsThreadOnceItHasEnded) {
  Pair pair;
  const Work here = pair.start_here();
  std::latch called(2);
  std::vector<int> order;  // of the group's thread alone
  for (const int number : {1, 2})
    here.then([&, number](const std::exception_ptr& error) {
      EXPECT_FALSE(error);
      EXPECT_EQ(pair.here[0], 3) << "the result is there";
      order.push_back(number);
      called.count_down();
    });
  EXPECT_FALSE(called.try_wait());
  const Work there = pair.start_there();
  called.wait();
  EXPECT_EQ(order, (std::vector{1, 2}));
  there.wait();
}

TEST(Work, ThatHasEndedCallsBackAtOnceOnThisThread) {
  Pair pair;
  const Work here = pair.start_here(), there = pair.start_there();
  here.wait();
  std::thread::id caller;
  here.then([&](const std::exception_ptr&) { caller = std::this_thread::get_id(); });
  EXPECT_EQ(caller, std::this_thread::get_id());
  there.wait();
}

TEST(Work, MayBeFollowedByMoreOfIt) {
  test::on_groups(3, [](Group& group) {
    std::vector<float> first(5, 1), second(7, 1);
    std::latch called(1);
    std::optional<Work> next;
    start(group, Collective::allreduce, std::span(first)).then([&](const std::exception_ptr&) {
      next = start(group, Collective::allreduce, std::span(second));
      called.count_down();
    });
    called.wait();
    next->wait();
    EXPECT_EQ(second[6], 3);
  });
}

TEST(Work, WhoseCallbackThrowsAbortsTheGroup) {
  Pair pair;
  const Work here = pair.start_here();
  std::latch both_ended(1), called(1);  // or the abort might end rank 1's part too
  here.then([&](const std::exception_ptr&) {
    both_ended.wait();
    throw std::runtime_error("no room for the result");
  });
  here.then([&](const std::exception_ptr&) { called.count_down(); });
  const Work there = pair.start_there();
  here.wait();
  there.wait();
  both_ended.count_down();
  called.wait();  // the others are called all the same
  test::expect_thrown<RemoteFailure>([&] { barrier(*pair.groups[1]); }, {"no room for the result"});
}

/// Threads whose stacks are longer than the address space cannot be made, as at a limit of threads.
class NoThreads final {
 public:
  NoThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t endless;
    pthread_attr_init(&endless);
    pthread_attr_setstacksize(&endless, std::size_t{1} << 50);
    pthread_setattr_default_np(&endless);
    pthread_attr_destroy(&endless);
  }
  ~NoThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

TEST(Start, WithoutAThreadIsASystemFailureAndLeavesTheGroupAsItWas) {
  Pair pair;
  {
    const NoThreads limit;
    EXPECT_THROW(static_cast<void>(pair.start_here()), SystemFailure);
  }
  std::vector<double> here(3, 1), there(3, 2);
  const Work next = start(*pair.groups[0], Collective::allreduce, std::span(here));
  const Work other = start(*pair.groups[1], Collective::allreduce, std::span(there));
  EXPECT_TRUE(next.wait_for(10s)) << "waits for a ticket that no operation has";
  EXPECT_TRUE(other.wait_for(10s));
  EXPECT_EQ(here[2], 3);
  EXPECT_EQ(pair.here[0], 1) << "what was refused is not carried out later";
}

TEST(Allocate, RefusesWhatOverflowsAndWhatThereIsNot) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers end a program that asks for too much";
#endif
  test::on_every_transport(2, [](Group& group) {
    EXPECT_THROW(static_cast<void>(group.allocate<double>((std::size_t{1} << 61) + 1)), Misuse);
    EXPECT_THROW(static_cast<void>(group.allocate(SIZE_MAX)), Misuse);
    EXPECT_THROW(static_cast<void>(group.allocate(PTRDIFF_MAX)), SystemFailure);
    barrier(group);
  });
}

}  // namespace
}  // namespace syncopate
