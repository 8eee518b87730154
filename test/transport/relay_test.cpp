// A relay without the job's secret between two ranks: under TLS a change by it is an error, never a value.
#include "transport/relay.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "transport/membership/control_thread.hpp"
#include "transport/tcp/transport.hpp"

namespace syncopate::transport {
namespace {

using namespace std::chrono_literals;

const std::string kSecret = "the secret of this very job";
constexpr std::size_t kSentBytes = 100'000, kFlipAt = 50'000;

/// One of two joined ranks. The network leads rank 1's bytes to rank 0 to another address.
struct Rank {
  std::shared_ptr<membership::ControlThread> control;
  std::unique_ptr<tcp::TcpTransport> links;

  Rank(int rank, std::vector<socket::Address> addresses, socket::Descriptor listener, bool tls) {
    auto mailbox = std::make_shared<membership::Mailbox>();
    std::vector<socket::Descriptor> listeners;
    listeners.push_back(std::move(listener));
    membership::ControlOptions options{.rank = rank,
                                       .addresses = std::move(addresses),
                                       .memory_sockets = std::vector<socket::Address>(2),
                                       .source = socket::Address::parse("127.0.0.1:0"),
                                       .group = 5,
                                       .secret = kSecret,
                                       .tls = tls,
                                       .silence = 8s,
                                       .log = {LogLevel::off, {}}};
    control = std::make_shared<membership::ControlThread>(std::move(options), std::move(listeners), mailbox);
    const tcp::TransportOptions by_socket{.rank = rank, .size = 2, .streams = 1, .rules = {.group = 5}};
    links = std::make_unique<tcp::TcpTransport>(by_socket, control, mailbox);
  }
};

struct Seen {
  std::vector<std::byte> value = std::vector<std::byte>(kSentBytes);
  membership::Failure failure;
};

/// Rank 1 sends 100 000 bytes of value 7 to rank 0. Returns the bytes that rank 0 has in the end.
Seen sent_through(const test::Relay::Touch& touch, bool tls) {
  std::vector<socket::Descriptor> listeners;
  std::vector<socket::Address> addresses;
  for (int rank = 0; rank < 2; ++rank) {
    listeners.push_back(socket::listen_on(socket::Address::parse("127.0.0.1:0")));
    addresses.push_back(socket::local_address(listeners.back()));
  }
  const test::Relay relay(addresses[0], touch);
  Seen seen;
  std::jthread sender([&] {
    Rank me(1, {relay.address, addresses[1]}, std::move(listeners[1]), tls);
    const std::vector<std::byte> bytes(kSentBytes, std::byte{7});
    std::ignore = test::failure_seen(*me.links, [&] {
      me.links->send({0, {1, 1}, bytes, 1});
      std::byte answer;
      me.links->receive(0, {2, 1}, {&answer, 1}, 2);
      test::finish(*me.links, 2);
      throw Timeout("rank 0 has the bytes");
    });
  });
  Rank me(0, addresses, std::move(listeners[0]), tls);
  const std::byte answer{1};
  seen.failure = test::failure_seen(*me.links, [&] {
    me.links->receive(1, {1, 1}, seen.value, 1);
    test::finish(*me.links, 1);
    me.links->send({1, {2, 1}, {&answer, 1}, 2});
    test::finish(*me.links, 1);
    throw Timeout("the bytes have come");
  });
  return seen;
}

void nothing(std::size_t /*at*/, std::span<std::byte> /*bytes*/) {}

/// Flips one bit of a payload: handshakes end long before.
void flip(std::size_t at, std::span<std::byte> bytes) {
  if (at <= kFlipAt && kFlipAt < at + bytes.size()) bytes[kFlipAt - at] ^= std::byte{64};
}

std::size_t changed(const Seen& seen) {
  return kSentBytes - static_cast<std::size_t>(std::ranges::count(seen.value, std::byte{7}));
}

TEST(Relay, ThatOnlyForwardsDisturbsNobody) {
  for (const bool tls : {false, true}) {
    const Seen seen = sent_through(nothing, tls);
    EXPECT_EQ(seen.failure.message, "the bytes have come");
    EXPECT_EQ(changed(seen), 0U);
  }
}

// The reason for TLS, and the proof that this relay changes bytes as the next test needs.
TEST(Relay, ThatChangesAByteIsNotSeenWithoutTls) {
  const Seen seen = sent_through(flip, false);
  EXPECT_EQ(seen.failure.message, "the bytes have come");
  EXPECT_EQ(changed(seen), 1U);
}

TEST(Relay, ThatChangesAByteIsAnErrorUnderTls) {
  const Seen seen = sent_through(flip, true);
  EXPECT_EQ(seen.failure.kind, ErrorKind::corrupt) << seen.failure.message;
  // Rank 0 has found it; rank 1, which TLS notifies, may report it first.
  const int peer = seen.failure.where.peer;
  EXPECT_TRUE(peer == 0 || peer == 1) << peer;
  EXPECT_TRUE(test::contains(seen.failure.message, fmt::format("from rank {}: TLS found", peer)))
      << seen.failure.message;
}

/// Forwards the handshake of both until TLS begins, then runs TLS with each by its own key.
struct Terminated {
  connect::Handshake caller, called;

  Terminated() : Terminated(pair(), pair()) {}

 private:
  using Ends = std::pair<socket::Channel, socket::Channel>;
  static Ends pair() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    return {socket::Channel(socket::Descriptor(ends[0])), socket::Channel(socket::Descriptor(ends[1]))};
  }
  Terminated(Ends left, Ends right)
      : caller(connect::Handshake::call(std::move(left.first), {.group = 5, .from = 1, .to = 0, .tls = true}, kSecret)),
        called(connect::Handshake::answer(std::move(right.first), {.group = 5, .from = 0, .tls = true}, kSecret)) {
    caller.advance();
    pass(left.second, right.second, connect::kHelloBytes);
    called.advance();
    pass(right.second, left.second, connect::kHelloBytes);
    caller.advance();
    pass(left.second, right.second, connect::kProofBytes);
    called.advance();
    EXPECT_EQ(caller.state(), connect::Handshake::State::reading);
    EXPECT_EQ(called.state(), connect::Handshake::State::reading) << "its proof was right: only TLS remains";
    left.second.secure({}, socket::TlsRole::server);
    right.second.secure({}, socket::TlsRole::client);
    for (int i = 0; i < 4; ++i) {
      std::ignore = left.second.negotiate();
      std::ignore = right.second.negotiate();
      caller.advance();
      called.advance();
    }
  }
  static void pass(socket::Channel& from, socket::Channel& to, std::size_t bytes) {
    std::vector<std::byte> all(bytes);
    ASSERT_EQ(from.read(std::span(all)).bytes, bytes);
    ASSERT_EQ(to.write(std::span<const std::byte>(all)).bytes, bytes);
  }
};

TEST(Relay, ThatEndsTlsItselfIsRefusedByBoth) {
  const Terminated relayed;
  for (const connect::Handshake* side : {&relayed.caller, &relayed.called}) {
    EXPECT_EQ(side->state(), connect::Handshake::State::refused);
    EXPECT_EQ(side->cause(), connect::Handshake::Cause::unauthorized);
    EXPECT_TRUE(test::contains(side->reason(), "something between the two ends answers")) << side->reason();
  }
}

}  // namespace
}  // namespace syncopate::transport
