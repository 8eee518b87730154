// Messages that were started without waiting: under way together, in order between two ranks, and failing together.
#include <gtest/gtest.h>

#include <tuple>

#include "ranks.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

const GroupOptions kBounded{.timeout = 20s};
// Larger than any socket buffer and any ring buffer: it is not sent before its receive is posted.
constexpr std::size_t kLarge = 3'000'000;

TEST(StartedMessages, OfTwoRanksMayCross) {
  test::on_every_transport(
      2,
      [](Group& group) {
        const int other = 1 - group.rank();
        std::vector<float> out(kLarge, static_cast<float>(group.rank())), in(kLarge, -1);
        for (int round = 0; round < 3; ++round) {
          Work sent = start_send(group, other, std::span(out));
          Work received = start_recv(group, other, std::span(in));
          received.wait();
          sent.wait();
          EXPECT_EQ(in, std::vector<float>(kLarge, static_cast<float>(other)));
        }
      },
      kBounded);
}

TEST(StartedMessages, ToOneRankDoNotHoldUpACallThatWaits) {
  test::on_every_transport(
      2,
      [](Group& group) {
        const int other = 1 - group.rank();
        std::vector<float> out(kLarge, 1), in(kLarge), back(7);
        Work sent = start_send(group, other, std::span(out));
        recv(group, other, std::span(in));
        sent.wait();
        exchange(group, {other, std::span(out).first(7)}, {other, std::span(back)});
        EXPECT_EQ(in, out);
        EXPECT_EQ(back.back(), 1);
      },
      kBounded);
}

// Rank 0 waits for a message that rank 1 sends only after it has the one that rank 0 starts later.
void answer_what_is_started_later(Group& group) {
  std::vector<std::int32_t> question(1000, 5), answer(1000);
  for (int round = 0; round < 20; ++round) {
    if (group.rank() == 0) {
      Work answered = start_recv(group, 1, std::span(answer));
      Work asked = start_send(group, 1, std::span(question));
      answered.wait();
      asked.wait();
      ASSERT_EQ(answer.back(), 6);
    } else {
      recv(group, 0, std::span(question));
      std::ranges::fill(answer, question.back() + 1);
      send(group, 0, std::span(answer));
    }
  }
}

TEST(StartedMessages, JoinThoseThatAreUnderWay) {
  test::on_every_transport(2, answer_what_is_started_later, kBounded);
  test::on_every_transport(2, answer_what_is_started_later, {.timeout = 20s, .delay = 100us});
}

TEST(StartedMessages, InLargeNumbersArriveInOrderBetweenTwoRanks) {
  test::on_every_transport(
      4,
      [](Group& group) {
        constexpr int kEach = 25;
        const auto length = [](int k) { return static_cast<std::size_t>(k % 5 == 4 ? 50'000 : k * 3); };
        std::vector<std::vector<std::int32_t>> buffers;
        buffers.reserve(std::size_t{2} * 4 * kEach);
        std::vector<Work> works;
        for (int k = 0; k < kEach; ++k)
          for (int peer = 0; peer < group.size(); ++peer) {
            if (peer == group.rank()) continue;
            works.push_back(start_send(group, peer, std::span(buffers.emplace_back(length(k), 100 * peer + k))));
          }
        const std::size_t sent = buffers.size();
        for (int peer = 0; peer < group.size(); ++peer)
          for (int k = 0; k < kEach && peer != group.rank(); ++k)
            works.push_back(start_recv(group, peer, std::span(buffers.emplace_back(length(k), -1))));
        for (Work& work : works) work.wait();
        for (std::size_t i = sent; i < buffers.size(); ++i) {
          const int k = static_cast<int>(i - sent) % kEach;
          EXPECT_EQ(buffers[i], std::vector<std::int32_t>(length(k), 100 * group.rank() + k));
        }
      },
      kBounded);
}

TEST(StartedMessages, StayOnTheirSideOfCollectives) {
  test::on_every_transport(
      2,
      [](Group& group) {
        const int other = 1 - group.rank();
        std::vector<std::vector<float>> out(6), in(6);
        std::vector<float> sum(kLarge / 10, 1);
        std::vector<Work> works;
        for (std::size_t round = 0; round < out.size(); ++round) {
          out[round].assign(kLarge / 10, static_cast<float>(round));
          in[round].resize(kLarge / 10);
          works.push_back(start_send(group, other, std::span(out[round])));
          works.push_back(start_recv(group, other, std::span(in[round])));
          works.push_back(start(group, Collective::allreduce, std::span(sum)));
        }
        barrier(group);
        for (Work& work : works) work.wait();
        EXPECT_EQ(in, out);
        EXPECT_EQ(sum.back(), 64);
      },
      kBounded);
}

TEST(StartedMessages, AllFailWhenOneDiffers) {
  const auto names_both = [](Work& work) {
    test::expect_thrown<Mismatch>([&] { work.wait(); }, {"f32 x 100", "f32 x 200"});
  };
  const auto body = [&](Group& group) {
    std::vector<float> values(200), never(10);
    std::vector<Work> works;
    const int other = (group.rank() + 1) % 2;
    if (group.rank() < 2) {
      works.push_back(start_recv(group, 2, std::span(never).first(5)));
      if (group.rank() == 0) works.push_back(start_recv(group, 1, std::span(never).last(5)));
      // The message may be sent before the other rank receives it.
      if (group.rank() == 0) std::ignore = start_send(group, 1, std::span(values).first(100));
      if (group.rank() == 1) works.push_back(start_recv(group, 0, std::span(values)));
    }
    // Rank 2 sends nothing: a frame of its barrier would be a second mismatch, and might be found first.
    if (group.rank() == 2) works.push_back(start_recv(group, 0, std::span(never)));
    works.push_back(start(group, Collective::barrier, {}));
    for (Work& work : works) names_both(work);
    if (group.rank() == 2) return;
    Work later = start_send(group, other, std::span(values));
    names_both(later);
  };
  test::on_every_transport(3, body, kBounded);
}

// A queue begins a message when the one before it is over, and so does the message's time.
TEST(StartedMessages, HaveATimeOfTheirOwn) {
  constexpr auto kTime = 2s;
  const auto body = [&](Group& group) {
    std::vector<float> values(20);
    const auto pass = [&] {
      const bool sends = group.rank() == 0;
      Work work = sends ? start_send(group, 1, std::span(values)) : start_recv(group, 0, std::span(values));
      work.wait();
    };
    pass();
    std::this_thread::sleep_for(kTime + 10ms * (2 - group.rank()));  // the first one's; rank 1 comes first
    EXPECT_NO_THROW(pass());
  };
  test::on_groups(2, body, {.timeout = kTime});
}

TEST(StartedMessages, EndAtTheTimeoutTogether) {
  const auto groups = Group::threads(3, {.timeout = 100ms});
  std::vector<float> values(20);
  std::vector<Work> works;
  works.push_back(start_recv(*groups[0], 1, std::span(values).first(5), {.name = "weights"}));
  works.push_back(start_recv(*groups[0], 1, std::span(values).first(5)));
  works.push_back(start_send(*groups[0], 2, std::span(values)));
  for (Work& work : works) test::expect_thrown<Timeout>([&] { work.wait(); }, {"rank 0 waits for rank"});
}

TEST(StartedMessages, LeaveNothingBehindThatKeepsAGroupFromEnding) {
  test::on_every_transport(
      2,
      [](Group& group) {
        std::vector<float> values(10);
        static_cast<void>(group.rank() == 0 ? start_send(group, 1, std::span(values))
                                            : start_recv(group, 0, std::span(values)));
        barrier(group);
      },
      kBounded);
}

}  // namespace
}  // namespace syncopate
