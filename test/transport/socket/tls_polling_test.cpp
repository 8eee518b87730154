// TLS and the poller: every waiting byte is announced by an event, and none too late.
#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "transport/socket/channel.hpp"
#include "transport/socket/poller.hpp"
#include "transport/socket/tls_pair.hpp"

namespace syncopate::transport::socket {
namespace {

/// Moves arrived bytes from one end of a relay to the other, at most `most`. Returns their number.
std::size_t relayed(const Descriptor& from, const Descriptor& to, std::size_t most = 1 << 20) {
  std::vector<std::byte> bytes(most);
  const ssize_t got = ::recv(from.number(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got <= 0) return 0;
  EXPECT_EQ(::send(to.number(), bytes.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL), got);
  return static_cast<std::size_t>(got);
}

// The reader holds the front of the record, and the kernel never has as many bytes as are awaited.
TEST(TlsPolling, TheRestOfARecordIsAnnouncedHoweverMuchOfItIsHere) {
  constexpr std::size_t kPlain = 10'000, kRecord = kPlain + 22, kRest = 100;
  auto [calling, near] = connection();
  auto [far, called] = connection();
  Two two;
  two.client = Channel(std::move(calling));
  two.server = Channel(std::move(called));
  two.client.secure(kKey, TlsRole::client);
  two.server.secure(kKey, TlsRole::server);
  const auto unsettled = [&] {
    return two.client_end.outcome == Outcome::nothing_now || two.server_end.outcome == Outcome::nothing_now;
  };
  for (const base::Time end = test::in(10s); unsettled() && std::chrono::steady_clock::now() < end;) {
    if (two.client_end.outcome == Outcome::nothing_now) two.client_end = two.client.negotiate();
    std::ignore = relayed(near, far);
    if (two.server_end.outcome == Outcome::nothing_now) two.server_end = two.server.negotiate();
    std::ignore = relayed(far, near);
  }
  ASSERT_FALSE(unsettled());
  two.server.read_ahead();
  Poller poller;
  poller.add(two.server.socket(), 7, EPOLLIN | EPOLLET);
  std::ignore = poller.wait(test::in(0s));

  const auto sent = noise(kPlain);
  ASSERT_EQ(two.client.write(std::span<const std::byte>(sent)).bytes, kPlain);
  for (std::size_t front = 0; front < kRecord - kRest;) {
    test::await_readable(near);
    front += relayed(near, far, kRecord - kRest - front);
  }
  std::vector<std::byte> into(kPlain);
  int waiting = 1;
  while (waiting > 0) {
    ASSERT_FALSE(poller.wait(test::in(10s)).empty());
    ASSERT_EQ(two.server.read(std::span(into)).bytes, 0U);
    ASSERT_EQ(::ioctl(far.number(), SIOCOUTQ, &waiting), 0);
  }
  two.server.announce_from(kPlain);
  ASSERT_EQ(relayed(near, far), kRest);
  ASSERT_FALSE(poller.wait(test::in(10s)).empty()) << "all bytes are here, and no event announces them";
  EXPECT_EQ(two.server.read(std::span(into)).bytes, kPlain);
  EXPECT_EQ(into, sent);
}

// An edge-triggered reader: an event must announce the bytes that it left.
TEST(TlsPolling, AShortReadMeansThatTheNextArrivalIsAnEvent) {
  Two two(kKey);
  two.server.read_ahead();
  Poller poller;
  poller.add(two.server.socket(), 7, EPOLLIN | EPOLLET);
  std::ignore = poller.wait(test::in(0s));
  const auto sent = noise(10'000);
  std::vector<std::byte> into(3000);
  for (int round = 0; round < 50; ++round) {
    ASSERT_EQ(two.client.write(std::span<const std::byte>(sent)).bytes, sent.size());
    for (std::size_t got = 0; got < sent.size();) {
      ASSERT_FALSE(poller.wait(test::in(10s)).empty()) << "no event announces the rest";
      for (Moved moved{.more = true}; moved.more; got += moved.bytes) {
        moved = two.server.read(std::span(into));
        ASSERT_NE(moved.outcome, Outcome::closed);
        EXPECT_TRUE(moved.more || moved.bytes < into.size());
      }
    }
  }
}

// A level-triggered reader: bytes that it does not request must stay in the kernel.
TEST(TlsPolling, WhatIsNotReadStaysWhereThePollerSeesIt) {
  Two two(kKey);
  const auto sent = noise(100);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(two.client.write(std::span<const std::byte>(sent)).bytes, sent.size());
  test::await_readable(two.server.socket());
  std::array<std::byte, 100> into;
  ASSERT_EQ(two.server.read(std::span<std::byte>(into)).bytes, 100u);
  int waiting = 0;
  ASSERT_EQ(::ioctl(two.server.number(), FIONREAD, &waiting), 0);
  EXPECT_GE(waiting, 200);
}

// The mark counts encrypted bytes; it may announce early, but never wait for bytes that are already here.
TEST(TlsPolling, AnAnnouncedFrameIsAnnouncedHoweverItsRecordsAreCut) {
  Two two(kKey);
  two.server.read_ahead();
  Poller poller;
  poller.add(two.server.socket(), 7, EPOLLIN | EPOLLET);
  const auto sent = noise(100'000);
  std::vector<std::byte> into(sent.size());
  for (const std::size_t first : {1u, 5000u, 16'384u, 16'400u, 60'000u, 99'990u}) {
    std::size_t got = 0;
    const auto drain = [&] {
      for (Moved moved{.more = true}; moved.more && got < into.size(); got += moved.bytes)
        moved = two.server.read(std::span(into).subspan(got));
    };
    ASSERT_EQ(two.client.write(std::span(sent).first(first)).bytes, first);
    two.server.announce_from(1);
    while (got < first) {
      ASSERT_FALSE(poller.wait(test::in(10s)).empty());
      drain();
    }
    two.server.announce_from(sent.size() - got);
    ASSERT_EQ(two.client.write(std::span(sent).subspan(first)).bytes, sent.size() - first);
    while (got < sent.size()) {
      ASSERT_FALSE(poller.wait(test::in(10s)).empty()) << "after " << got << " bytes, of which " << first << " first";
      drain();
      two.server.announce_from(std::max<std::size_t>(1, sent.size() - got));
    }
    EXPECT_EQ(into, sent);
  }
}

TEST(TlsPolling, AWriteThatTheKernelDoesNotTakeGoesOnWhereItStopped) {
  Two two(kKey);
  const auto sent = noise(12 << 20);
  std::size_t out = 0;
  bool was_full = false;
  std::vector<std::byte> got, into(50'000);
  for (const base::Time end = test::in(30s); got.size() < sent.size() && std::chrono::steady_clock::now() < end;) {
    const Moved moved = out < sent.size() ? two.client.write(std::span(sent).subspan(out)) : Moved{};
    out += moved.bytes;
    was_full = was_full || (out < sent.size() && !moved.more);
    const Moved read = two.server.read(std::span(into));
    ASSERT_NE(read.outcome, Outcome::closed);
    got.insert(got.end(), into.begin(), into.begin() + static_cast<std::ptrdiff_t>(read.bytes));
  }
  EXPECT_TRUE(was_full);
  EXPECT_TRUE(got == sent);
}

// A message may announce the end of its connection: it must be received before the end.
TEST(TlsPolling, AMessageAndTheEndBehindItAreToldOneAfterTheOther) {
  Two two(kKey);
  FramedChannel from(std::move(two.client), 100), to(std::move(two.server), 100);
  from.queue("the last words");
  ASSERT_TRUE(from.flush());
  { const FramedChannel gone = std::move(from); }
  pollfd one{to.socket().number(), POLLRDHUP, 0};
  ASSERT_EQ(::poll(&one, 1, 10'000), 1);
  std::vector<std::string> messages;
  EXPECT_TRUE(to.read(messages));
  EXPECT_EQ(messages, std::vector<std::string>{"the last words"});
  test::await_readable(to.socket());
  EXPECT_FALSE(to.read(messages));
}

// A read of messages ends after 64 KiB, possibly within a record, whose rest is then not in the kernel.
TEST(TlsPolling, ARecordIsReadToItsEnd) {
  Two two(kKey);
  FramedChannel from(std::move(two.client), 100'000), to(std::move(two.server), 100'000);
  std::vector<std::string> messages;
  for (const std::size_t bytes : {5u, 65'532u}) {
    from.queue(std::string(bytes, 'x'));
    ASSERT_TRUE(from.flush());
  }
  while (messages.size() < 2) {
    ASSERT_TRUE(from.flush());
    pollfd one{to.socket().number(), POLLIN, 0};
    ASSERT_EQ(::poll(&one, 1, 10'000), 1) << "no event announces the rest";
    ASSERT_TRUE(to.read(messages));
  }
  EXPECT_EQ(messages[1].size(), 65'532U);
}

}  // namespace
}  // namespace syncopate::transport::socket
