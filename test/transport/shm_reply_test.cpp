// Replies in shared memory: what both ranks hold for each other neither damages a frame nor stops one.
#include <algorithm>

#include "ranks.hpp"

namespace syncopate::transport {
namespace {

using test::in;
using namespace std::chrono_literals;

enum Kind : std::uint64_t { data = 0, reply = 1, data_received = 2, reply_received = 3 };

std::byte element(int rank, std::uint64_t frame, std::size_t at) {
  return static_cast<std::byte>(static_cast<std::uint64_t>(rank) * 7 + frame * 31 + at);
}
std::byte one_more(std::byte value) { return static_cast<std::byte>(std::to_integer<unsigned>(value) + 1); }

/// Both ranks send frames, and return with one added what comes: data 0, data 1, reply 0, data 2, reply 1, and so on.
class Partner final {
 public:
  Partner(Endpoint& me, std::size_t bytes, std::uint64_t frames) : me_(me), frames_(frames) {
    for (auto* each : {&data_, &sums_, &came_, &back_}) each->assign(frames, std::vector<std::byte>(bytes));
    for (std::uint64_t i = 0; i < frames; ++i)
      for (std::size_t at = 0; at < bytes; ++at) data_[i][at] = element(me.rank, i, at);
  }

  void run() {
    for (std::uint64_t i = 0; i <= frames_; ++i) {
      if (i < frames_) me_.links->receive(peer(), kLabel, came_[i], 4 * i + data_received);
      if (i > 0) me_.links->receive(peer(), kLabel, back_[i - 1], 4 * (i - 1) + reply_received);
    }
    send(0), send(1);
    for (std::uint64_t events = 0; events < 4 * frames_;)
      for (const Event& event : me_.links->poll(in(30s), {})) ++events, take(event);
  }
  [[nodiscard]] std::uint64_t in_place() const { return in_place_; }

 private:
  static constexpr Label kLabel{1, 1};
  [[nodiscard]] int peer() const { return 1 - me_.rank; }

  void send(std::uint64_t i) {
    if (i < frames_) me_.links->send(peer(), kLabel, data_[i], 4 * i + data);
  }

  void take(const Event& event) {
    const std::uint64_t i = event.token / 4;
    if (event.token % 4 == data_received) {
      std::ranges::transform(event.bytes, sums_[i].begin(), one_more);
      const base::Bytes memory = me_.links->reply_memory(event.token, peer());
      in_place_ += memory.empty() ? 0 : 1;
      if (!memory.empty()) std::ranges::copy(sums_[i], memory.begin());
      me_.links->reply(event.token, {peer(), kLabel, sums_[i], 4 * i + reply});
      send(i + 2);
    } else if (event.token % 4 == reply_received) {
      EXPECT_TRUE(std::ranges::equal(event.bytes, data_[i], {}, {}, one_more)) << "frame " << i;
      me_.links->release(event.token);
    }
  }

  Endpoint& me_;
  std::uint64_t frames_, in_place_ = 0;
  std::vector<std::vector<std::byte>> data_, sums_, came_, back_;
};

// Many times what a lane holds; and who waits, sleeps.
TEST(ShmReplies, PassWhileBothRanksHoldFramesForThem) {
  GroupOptions options = test::quiet_options();
  options.transport = "shm";
  for (const std::size_t bytes : {100UL, 512UL, 5'000UL, kMemoryFrame, 250'000UL})
    test::with_ranks(2, options, [&](Endpoint& me) {
      constexpr std::uint64_t kFrames = 60;
      Partner partner(me, bytes, kFrames);
      partner.run();
      EXPECT_EQ(partner.in_place(), bytes < 512 || bytes > kMemoryFrame ? 0 : kFrames) << bytes;
    });
}

TEST(Replies, OfOtherTransportsAreFramesLikeOthers) {
  GroupOptions options = test::quiet_options();
  options.transport = "tcp";
  test::with_ranks(2, options, [](Endpoint& me) {
    Partner partner(me, 5'000, 20);
    partner.run();
    EXPECT_EQ(partner.in_place(), 0U);
  });
}

}  // namespace
}  // namespace syncopate::transport
