// Messages between two ranks: order, exchange, several in flight, and what goes wrong.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "ranks.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

TEST(Messages, ArriveInOrderBesideCollectives) {
  test::on_every_transport(3, [](Group& group) {
    for (int round = 0; round < 3; ++round) {
      std::vector<std::int32_t> values(70000);
      if (group.rank() == 2) {
        std::iota(values.begin(), values.end(), round);
        send(group, 0, std::span(values), {.name = "activations"});
        send(group, 0, std::span(values).first(3));
      }
      if (group.rank() == 0) {
        recv(group, 2, std::span(values), {.name = "activations"});
        EXPECT_EQ(values[69999], 69999 + round);
        recv(group, 2, std::span(values).first(3));
      }
      barrier(group);
    }
  });
}

TEST(Messages, OfNoElementsArrive) {
  test::on_every_transport(2, [](Group& group) {
    group.rank() == 0 ? send(group, 1, Buffer()) : recv(group, 0, Buffer());
    barrier(group);
  });
}

// Larger than any socket buffer: two sends that wait for each other would never end.
TEST(Exchange, GoesBothWaysAndRoundACircle) {
  test::on_every_transport(4,
                           [](Group& group) {
                             const int size = group.size(), next = (group.rank() + 1) % size,
                                       previous = (group.rank() + size - 1) % size;
                             std::vector<float> out(3'000'000, static_cast<float>(group.rank())), in(out.size());
                             exchange(group, {next, std::span(out)}, {previous, std::span(in)});
                             EXPECT_EQ(in.front(), static_cast<float>(previous));
                             EXPECT_EQ(in.back(), static_cast<float>(previous));
                             EXPECT_EQ(out.back(), static_cast<float>(group.rank())) << "what is sent stays as it is";
                           },
                           {.timeout = 20s});
}

TEST(Messages, AreCarriedOutByTheGroupsThreadToo) {
  test::on_every_transport(2, [](Group& group) {
    std::vector<std::int64_t> a(5000, group.rank()), b(7, group.rank()), sum(100, 1);
    const int other = 1 - group.rank();
    std::vector<Work> works;
    works.push_back(group.rank() == 0 ? start_send(group, other, std::span(a))
                                      : start_recv(group, other, std::span(a)));
    works.push_back(start(group, Collective::allreduce, std::span(sum)));
    works.push_back(group.rank() == 0 ? start_recv(group, other, std::span(b))
                                      : start_send(group, other, std::span(b)));
    for (Work& work : works) work.wait();
    EXPECT_EQ(a[4999], 0);
    EXPECT_EQ(b[6], 1);
    EXPECT_EQ(sum[99], 2);
  });
}

TEST(Messages, ThatDifferAreAMismatchOnEveryRankThatNamesBoth) {
  const auto disagree = [](Group& group) {
    std::vector<float> values(200);
    if (group.rank() == 0) send(group, 1, std::span(values).first(100));
    if (group.rank() == 1) recv(group, 0, std::span(values));
    barrier(group);
  };
  auto groups = Group::threads(3, {.timeout = 20s});
  const auto in_process = test::outcomes(3, [&](int rank) { disagree(*groups[static_cast<std::size_t>(rank)]); });
  for (const auto& failures : {in_process, test::outcomes_over("tcp", 3, disagree, {.timeout = 20s})})
    for (const std::exception_ptr& failure : failures)
      test::expect_thrown<Mismatch>(failure, {"f32 x 100", "f32 x 200", "message 1 from rank 0 to rank 1"});
}

/// Rank 0 sends one vector to rank 1, which expects another; then all meet.
std::vector<std::exception_ptr> ends_of(const std::string& transport, Buffer sent, Buffer expected) {
  const auto disagree = [&](Group& group) {
    if (group.rank() == 0) send(group, 1, sent, {.name = "a"});
    if (group.rank() == 1) recv(group, 0, expected, {.name = "b"});
    barrier(group);
  };
  return test::outcomes_over(transport, 3, disagree, {.timeout = 20s});
}

TEST(Messages, OfNoElementsAreComparedLikeOthers) {
  std::vector<float> values(5);
  const Buffer nothing(values.data(), 0, DType::f32), five = std::span(values), other(values.data(), 0, DType::f64);
  for (const char* transport : {"tcp", "shm"})
    for (const auto& [sent, expected] : {std::pair{nothing, five}, {five, nothing}, {nothing, other}})
      for (const std::exception_ptr& end : ends_of(transport, sent, expected)) {
        SCOPED_TRACE(transport);
        test::expect_thrown<Mismatch>(end, {"'a'", "'b'"});
      }
}

/// Only the header shows that a frame is shorter than expected: no later bytes wake the receiver.
TEST(Messages, AndPartsThatAreShorterAreFoundThoughNothingFollows) {
  std::vector<float> values(500);
  const std::span all(values);
  const std::vector<std::size_t> none(2), gets{500, 0};
  const std::function<void(Group&)> calls[] = {
      [&](Group& group) {
        if (group.rank() == 1) return recv(group, 0, all);
        send(group, 1, Buffer());
        recv(group, 1, Buffer());
      },
      [&](Group& group) {
        const bool expects = group.rank() == 1;
        alltoall_v(group, {Buffer(), none}, {expects ? Buffer(all) : Buffer(), expects ? gets : none});
        recv(group, 1, Buffer());
      }};
  for (const char* transport : {"tcp", "shm"})
    for (const auto& call : calls)
      for (const std::exception_ptr& failure : test::outcomes_over(transport, 2, call, {.timeout = 10s})) {
        SCOPED_TRACE(transport);
        test::expect_thrown<Mismatch>(failure, {});
      }
}

TEST(Messages, WhereTheOtherRankCallsACollectiveAreAMismatch) {
  const auto disagree = [](Group& group) {
    std::vector<float> values(200);
    if (group.rank() == 0) return send(group, 1, std::span(values));
    allreduce(group, std::span(values));
  };
  for (const std::exception_ptr& failure : test::outcomes_over("tcp", 2, disagree, {.timeout = 20s}))
    EXPECT_FALSE(test::kind_thrown(failure).starts_with("Corrupt")) << test::kind_thrown(failure);
  auto groups = Group::threads(2, {.timeout = 20s});
  for (const std::exception_ptr& failure :
       test::outcomes(2, [&](int rank) { disagree(*groups[static_cast<std::size_t>(rank)]); }))
    test::expect_thrown<Mismatch>(failure, {});
}

TEST(Messages, ThatNobodySendsEndAtTheTimeout) {
  auto groups = Group::threads(2, {.timeout = 100ms});
  float value = 0;
  const auto receive = [&] { recv(*groups[0], 1, std::span(&value, 1), {.name = "weights"}); };
  EXPECT_EQ(test::expect_thrown<Timeout>(receive, {"waits for rank 1"}).tensor, "weights");
}

TEST(Misuse, OfMessagesAndTwoBuffersNamesWhatIsAllowed) {
  test::on_groups(2, [](Group& group) {
    std::vector<float> values(8), other(8);
    const auto span = std::span(values);
    const auto has = [](const auto& call, const char* what) { test::expect_thrown<Misuse>(call, {what}); };
    has([&] { send(group, group.rank(), span); }, "other ranks from 0 to 1");
    has([&] { recv(group, 2, span); }, "other ranks from 0 to 1");
    has([&] { send(group, -1, span); }, "other ranks from 0 to 1");
    has([&] { alltoall(group, span, span); }, "overlap");
    has([&] { alltoall(group, span, std::span(other).first(6)); }, "multiples of the ranks");
    has([&] { static_cast<void>(start(group, Collective::alltoall, span)); }, "multiples of the ranks");
    has([&] { allgather_v(group, span, std::vector<std::size_t>{8}); }, "one part for each of 2 ranks");
    barrier(group);  // nothing was harmed
  });
}

TEST(Misuse, OfAnExchangeIsThatItsBuffersOverlap) {
  test::on_groups(2, [](Group& group) {
    std::vector<float> values(8);
    const auto span = std::span(values);
    const int peer = 1 - group.rank();
    test::expect_thrown<Misuse>([&] { exchange(group, {peer, span}, {peer, span.subspan(4)}); }, {"overlap"});
  });
}

}  // namespace
}  // namespace syncopate
