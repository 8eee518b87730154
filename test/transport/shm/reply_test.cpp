// Replies in shared memory: memory that both ranks hold for each other neither damages a frame nor blocks one.
#include <algorithm>
#include <set>

#include "base/bytes.hpp"
#include "transport/ranks.hpp"
#include "transport/transport.hpp"

namespace syncopate::transport {
namespace {

using test::in;
using namespace std::chrono_literals;

enum Kind : std::uint64_t { data = 0, reply = 1, data_received = 2, reply_received = 3 };

std::byte element(int rank, std::uint64_t frame, std::size_t at) {
  return static_cast<std::byte>(static_cast<std::uint64_t>(rank) * 7 + frame * 31 + at);
}
std::byte one_more(std::byte value) { return static_cast<std::byte>(std::to_integer<unsigned>(value) + 1); }

/// Both ranks send frames, and return each arrival with one added: data 0, data 1, reply 0, data 2, reply 1, and so on.
class Partner final {
 public:
  /// The peer's reply comes back into the frame itself, as in a collective.
  Partner(Endpoint& me, std::size_t bytes, std::uint64_t frames, bool in_heap)
      : me_(me), lending_(*me.links->lending()), frames_(frames) {
    for (auto* each : {&sums_, &came_}) each->assign(frames, std::vector<std::byte>(bytes));
    for (std::uint64_t i = 0; i < frames; ++i) {
      memory_.push_back(in_heap ? me.links->lending()->allocate(bytes) : base::zeroed_pages(bytes));
      data_.emplace_back(memory_.back().get(), bytes);
      for (std::size_t at = 0; at < bytes; ++at) data_[i][at] = element(me.rank, i, at);
    }
  }

  void run() {
    for (std::uint64_t i = 0; i <= frames_; ++i) {
      if (i < frames_) me_.links->receive(peer(), kLabel, came_[i], 4 * i + data_received);
      if (i > 0) me_.links->receive(peer(), kLabel, data_[i - 1], 4 * (i - 1) + reply_received);
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
    if (i < frames_) lending_.lend({peer(), kLabel, data_[i], 4 * i + data});
  }

  void take(const Event& event) {
    const std::uint64_t i = event.token / 4;
    if (event.token % 4 == data_received) {
      std::ranges::transform(event.bytes, sums_[i].begin(), one_more);
      const base::Bytes memory = lending_.reply_memory(event.token, peer()).bytes;
      in_place_ += memory.empty() ? 0 : 1;
      if (!memory.empty()) std::ranges::copy(sums_[i], memory.begin());
      lending_.reply(event.token, {peer(), kLabel, sums_[i], 4 * i + reply});
      send(i + 2);
    } else if (event.token % 4 == reply_received) {
      for (std::size_t at = 0; at < event.bytes.size(); ++at)
        ASSERT_EQ(event.bytes[at], one_more(element(me_.rank, i, at))) << "frame " << i << " at " << at;
      me_.links->release(event.token);
    }
  }

  Endpoint& me_;
  Lending& lending_;
  std::uint64_t frames_, in_place_ = 0;
  std::vector<std::shared_ptr<std::byte[]>> memory_;
  std::vector<base::Bytes> data_;
  std::vector<std::vector<std::byte>> sums_, came_;
};

// Many times the ring's size; and waiting ranks sleep.
TEST(ShmReplies, PassWhileBothRanksHoldFramesForThem) {
  GroupOptions options = test::quiet_options();
  options.transport = TransportChoice::shm;
  for (const bool in_heap : {false, true})
    for (const std::size_t bytes : {100UL, 512UL, 5'000UL, kMemoryFrames.longest, 250'000UL})
      test::with_ranks(2, options, [&](Endpoint& me) {
        const std::uint64_t frames = bytes < 10'000 ? 60 : 15;  // sanitizers watch each byte
        Partner partner(me, bytes, frames, in_heap);
        partner.run();
        const bool is_lent = bytes >= 512 && (in_heap || bytes <= kMemoryFrames.longest);
        EXPECT_EQ(partner.in_place(), is_lent ? frames : 0) << bytes << (in_heap ? " in the heap" : "");
      });
}

TEST(Replies, ToAnotherHostAreFramesLikeOthers) {
  GroupOptions options = test::quiet_options();
  options.transport = TransportChoice::automatic;
  const auto host_of = [](int rank) { return rank == 1 ? "another" : "one"; };  // rank 2 shares memory with rank 0
  test::with_ranks(
      3, options,
      [](Endpoint& me) {
        if (me.rank == 2) return;
        Partner partner(me, 5'000, 20, true);
        partner.run();
        EXPECT_EQ(partner.in_place(), 0U);
      },
      host_of);
}

TEST(Lending, IsNotOfferedWherePeersReachNoMemory) {
  test::with_ranks(2, test::quiet_options(), [](Endpoint& me) { EXPECT_EQ(me.links->lending(), nullptr); });
  EXPECT_EQ(join_threads(1, test::quiet_options())[0].links->lending(), nullptr);
}

// The peer may read a frame slowly: other frames of the same link finish before it.
TEST(ShmReferences, AreGivenBackInAnyOrder) {
  GroupOptions options = test::quiet_options();
  options.transport = TransportChoice::shm;
  test::with_ranks(2, options, [](Endpoint& me) {
    constexpr std::size_t kBytes = 20'000;
    constexpr Label kLabel{1, 1};
    const auto memory = me.links->lending()->allocate(3 * kBytes);
    const auto part = [&](std::uint64_t i) { return base::Bytes(memory.get() + i * kBytes, kBytes); };
    std::byte last{};
    if (me.rank == 0) {
      for (std::uint64_t i = 0; i < 3; ++i) me.links->send({1, kLabel, part(i), i});
      me.links->receive(1, kLabel, {&last, 1}, 3);
      std::set<std::uint64_t> gone;
      while (gone.size() < 3)
        for (const Event& event : me.links->poll(in(30s), {})) {
          gone.insert(event.token);
          if (event.arrival) me.links->release(event.token);
        }
      EXPECT_EQ(gone, (std::set<std::uint64_t>{1, 2, 3})) << "the released frames, and the peer's message";
      me.links->send({1, kLabel, {&last, 1}, 4});
      test::finish(*me.links, 2);
    } else {
      for (std::uint64_t i = 0; i < 3; ++i) me.links->receive(0, kLabel, part(i), i);
      for (int arrived = 0; arrived < 3;) arrived += static_cast<int>(me.links->poll(in(30s), {}).size());
      me.links->release(2);
      me.links->release(1);
      me.links->send({0, kLabel, {&last, 1}, 3});
      me.links->receive(0, kLabel, {&last, 1}, 4);
      test::finish(*me.links, 2);
      me.links->release(0);
    }
  });
}

}  // namespace
}  // namespace syncopate::transport
