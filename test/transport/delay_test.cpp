// Delay: messages leave late, in order and concurrently; a waiting message does not hold up others.
#include "transport/delay.hpp"

#include <gtest/gtest.h>

#include <array>

#include "syncopate/collective.hpp"
#include "transport/ranks.hpp"

namespace syncopate::transport {
namespace {

using test::in;
using namespace std::chrono_literals;

/// Ends every send at once, and records when it was handed over.
class Recorder : public Transport {
 public:
  struct Sent {
    base::Time at;
    std::uint64_t token = 0;
  };
  explicit Recorder(std::vector<Sent>& sent) : sent_(sent) {}
  void send(const Frame& frame) override {
    sent_.push_back({std::chrono::steady_clock::now(), frame.token});
    events_.push_back({frame.token, false, {}});
  }
  void receive(int, const Label&, base::Bytes into, std::uint64_t token) override {
    events_.push_back({token, true, into});
  }
  void release(std::uint64_t) override {}
  std::span<const Event> poll(base::Time deadline, Patience) override {
    reported_.clear();
    std::swap(reported_, events_);
    if (reported_.empty() && !std::exchange(woken_, false)) std::this_thread::sleep_until(deadline);
    return reported_;
  }
  void wake() noexcept override { woken_ = true; }
  std::pair<std::uint64_t, std::uint64_t> traffic() const noexcept override { return {7, 9}; }

 protected:
  std::vector<Sent>& sent_;
  std::vector<Event> events_, reported_;
  bool woken_ = false;
};

/// Also lends memory, and records its use.
class Lender final : public Recorder, public Lending {
 public:
  using Recorder::Recorder;
  Lending* lending() noexcept override { return this; }
  std::shared_ptr<std::byte[]> allocate(std::size_t bytes) override {
    return memory = std::make_shared<std::byte[]>(bytes);
  }
  bool reaches(base::ConstBytes vector) const noexcept override { return vector.data() == memory.get(); }
  void lend(const Frame& frame) override {
    ++loans;
    send(frame);
  }
  ReplyMemory reply_memory(std::uint64_t, int) override { return {{memory.get(), 1}, true}; }
  void reply(std::uint64_t, const Frame&) override { ++replies; }
  void release(std::uint64_t token) override { released.push_back(token); }

  std::shared_ptr<std::byte[]> memory;
  int loans = 0, replies = 0;
  std::vector<std::uint64_t> released;
};

TEST(Delay, HandsEachMessageOverInOrderNoEarlierThanItsTime) {
  std::vector<Recorder::Sent> sent;
  const auto links = delayed(std::make_unique<Recorder>(sent), 5ms);
  const base::Time begin = std::chrono::steady_clock::now();
  for (std::uint64_t token = 0; token < 3; ++token) links->send({1, {}, {}, token});
  EXPECT_TRUE(sent.empty()) << "nothing leaves before a poll";
  test::finish(*links, 3);
  ASSERT_EQ(sent.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(sent[i].token, i);
    EXPECT_GE(sent[i].at - begin, 5ms);
  }
  EXPECT_EQ(links->traffic(), (std::pair<std::uint64_t, std::uint64_t>{7, 9}));
}

TEST(Delay, HoldsUpNothingElse) {
  std::vector<Recorder::Sent> sent;
  const auto links = delayed(std::make_unique<Recorder>(sent), 1h);
  std::array<std::byte, 4> into{};
  links->send({1, {}, {}, 1});
  links->receive(1, {}, into, 2);
  const auto events = links->poll(in(30s), {});
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].token, 2U);
  links->wake();
  EXPECT_TRUE(links->poll(in(1h), {}).empty()) << "a wake ends a poll";
  EXPECT_TRUE(links->poll(in(2ms), {}).empty()) << "and so does its deadline";
  EXPECT_TRUE(sent.empty());
}

TEST(Delay, AWakeEndsOnePoll) {
  std::vector<Recorder::Sent> sent;
  const auto links = delayed(std::make_unique<Recorder>(sent), 5ms);
  links->wake();
  EXPECT_TRUE(links->poll(in(1h), {}).empty());
  links->send({1, {}, {}, 3});
  EXPECT_EQ(links->poll(in(1h), {}).size(), 1U) << "it returns when the message has left, not when it is due";
}

TEST(Delay, LendsWhatTheTransportInsideLends) {
  std::vector<Recorder::Sent> sent;
  auto inner = std::make_unique<Lender>(sent);
  Lender& lender = *inner;
  const auto links = delayed(std::move(inner), 5ms);
  ASSERT_NE(links->lending(), nullptr);
  Lending& lending = *links->lending();
  const auto memory = lending.allocate(8);
  EXPECT_EQ(memory, lender.memory);
  EXPECT_TRUE(lending.reaches({memory.get(), 8}));
  const base::Time begin = std::chrono::steady_clock::now();
  lending.lend({1, {}, {memory.get(), 8}, 3});
  EXPECT_EQ(lender.loans, 0) << "a loan is delayed as any frame";
  test::finish(*links, 1);
  EXPECT_EQ(lender.loans, 1);
  EXPECT_GE(sent.at(0).at - begin, 5ms);
  EXPECT_EQ(delayed(std::make_unique<Recorder>(sent), 5ms)->lending(), nullptr);
}

TEST(Delay, HoldsAReplyBackAndNotWhatItRepliesTo) {
  std::vector<Recorder::Sent> sent;
  auto inner = std::make_unique<Lender>(sent);
  Lender& lender = *inner;
  const auto links = delayed(std::move(inner), 5ms);
  EXPECT_TRUE(links->lending()->reply_memory(1, 1).bytes.empty());
  const base::Time begin = std::chrono::steady_clock::now();
  links->lending()->reply(1, {1, {}, {}, 4});
  EXPECT_EQ(lender.released, std::vector<std::uint64_t>{1}) << "memory that is held for the delay reduces bandwidth";
  EXPECT_TRUE(sent.empty());
  test::finish(*links, 1);
  EXPECT_EQ(lender.replies, 0);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_GE(sent[0].at - begin, 5ms);
}

TEST(Delay, OfNothingIsTheTransportItself) {
  std::vector<Recorder::Sent> sent;
  auto inner = std::make_unique<Recorder>(sent);
  const Transport* const plain = inner.get();
  EXPECT_EQ(delayed(std::move(inner), 0us).get(), plain);
}

/// Every rank sums ranks, `times` times. Returns the minimum time that it took.
base::Duration all_reduce(std::vector<std::unique_ptr<Group>>& groups, std::size_t count, int times) {
  const base::Time begin = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> ranks;
    for (auto& group : groups)
      ranks.emplace_back([&group, count, times] {
        for (int i = 0; i < times; ++i) {
          std::vector<float> data(count, static_cast<float>(group->rank()));
          allreduce(*group, {data.data(), data.size(), DType::f32}, {.algorithm = "ring"});
          const auto size = static_cast<float>(group->size());
          EXPECT_EQ(data.front(), size * (size - 1) / 2);
          EXPECT_EQ(data.back(), size * (size - 1) / 2);
        }
      });
  }
  return std::chrono::steady_clock::now() - begin;
}

TEST(Delay, IsPaidInEveryRoundOfARingOverThreadsAndOverSockets) {
  GroupOptions options = test::quiet_options();
  options.delay = 3ms;
  auto threads = Group::threads(4, options);
  EXPECT_GE(all_reduce(threads, 64, 2), 2 * 6 * 3ms);

  const test::Folder folder;
  std::vector<std::unique_ptr<Group>> groups(3);
  {
    std::vector<std::jthread> joining;
    for (int rank = 0; rank < 3; ++rank)
      joining.emplace_back([&, rank] {
        GroupOptions mine = options;
        mine.rank = rank;
        mine.size = 3;
        mine.rendezvous = "file://" + folder.path;
        groups[static_cast<std::size_t>(rank)] = Group::join(mine);
      });
  }
  EXPECT_GE(all_reduce(groups, 64, 2), 2 * 4 * 3ms);
}

TEST(Delay, IsPaidOnceByMessagesThatAreUnderWayTogether) {
  GroupOptions options = test::quiet_options();
  options.delay = 200ms;
  auto groups = Group::threads(2, options);
  // Two rounds of 128 KiB segments, eight each: one after the other they would take 16 delays, 3.2 s.
  const base::Duration taken = all_reduce(groups, 512 << 10, 1);
  EXPECT_GE(taken, 2 * 200ms);
  EXPECT_LT(taken, 16 * 200ms);
}

}  // namespace
}  // namespace syncopate::transport
