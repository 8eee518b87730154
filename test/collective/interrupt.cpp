// The callback while ranks wait: it may end the wait, and every rank gets the reason.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "ranks.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate {
namespace {

/// Two ranks of which the first waits for the second, in a call that `wait` makes; the second look ends it.
void expect_interrupted(const std::function<void(Group&)>& wait) {
  std::atomic<int> looks = 0;
  const GroupOptions options{.timeout = std::chrono::seconds(60), .while_waiting = [&] {
                               if (++looks == 2) throw std::runtime_error("enough of waiting");
                             }};
  auto groups = Group::threads(2, options);
  EXPECT_THROW(wait(*groups[0]), std::exception);
  EXPECT_GE(looks, 2);
  std::vector<float> values(3);
  const auto receive = [&] { recv(*groups[1], 0, std::span(values)); };
  EXPECT_EQ(test::expect_thrown<RemoteFailure>(receive, {"enough of waiting"}).peer, 0);
}

TEST(WhileWaiting, EndsACollective) {
  expect_interrupted([](Group& group) {
    std::vector<float> values(3);
    allreduce(group, std::span(values));
  });
}

TEST(WhileWaiting, EndsAMessage) {
  expect_interrupted([](Group& group) {
    std::vector<float> values(3);
    recv(group, 1, std::span(values));
  });
}

TEST(WhileWaiting, EndsWhatWasStarted) {
  expect_interrupted([](Group& group) {
    std::vector<float> values(3);
    start(group, Collective::allreduce, std::span(values)).wait();
  });
}

TEST(WhileWaiting, IsNotCalledWhereNothingWaits) {
  std::atomic<int> looks = 0;
  const auto groups = Group::threads(1, {.while_waiting = [&] { ++looks; }});
  std::vector<float> values(3);
  allreduce(*groups[0], std::span(values));
  EXPECT_EQ(looks, 0);
}

TEST(WhileWaiting, LetsAWaitGoOnThatItDoesNotEnd) {
  std::atomic<int> looks = 0;
  auto groups = Group::threads(2, {.while_waiting = [&] { ++looks; }});
  test::on_ranks(2, [&](int rank) {
    std::vector<float> values(3, 1);
    while (rank == 1 && looks == 0) std::this_thread::yield();
    allreduce(*groups[static_cast<std::size_t>(rank)], std::span(values));
    EXPECT_EQ(values[0], 2);
  });
}

}  // namespace
}  // namespace syncopate
