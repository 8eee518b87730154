// The acceptor: a peer that knows the job's secret is accepted, and strangers disturb nobody.
#include "transport/connect/acceptor.hpp"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

#include "transport/ranks.hpp"

namespace syncopate::transport {
namespace {

using test::barrier;
using test::quiet_options;
using test::with_ranks;
using namespace std::chrono_literals;

using HelloText = std::array<std::byte, connect::kHelloBytes>;

/// A caller's hello, byte by byte as docs/transport.md has it.
HelloText hello_of_stranger(std::uint64_t group, std::int32_t to) {
  HelloText bytes{};
  const std::string version(syncopate::version());
  std::memcpy(bytes.data(), "SYNCOPTE", 8);
  base::put(bytes, 8, std::uint16_t{1});
  base::put(bytes, 10, static_cast<std::uint8_t>(connect::Purpose::data));
  bytes[11] = std::byte{'C'};
  std::memcpy(bytes.data() + 16, version.data(), version.size());
  base::put(bytes, 32, group);
  base::put(bytes, 40, std::int32_t{3});
  base::put(bytes, 44, to);
  for (std::size_t at = 64; at < bytes.size(); ++at) bytes[at] = static_cast<std::byte>(at);
  return bytes;
}

/// What rank 0 of group 5 makes of a caller that sends this hello, and the proof that `prove` makes of both hellos and
/// of rank 0's own proof.
connect::Handshake answered(const HelloText& hello, const std::string& secret,
                            const std::function<std::vector<std::byte>(base::ConstBytes, base::ConstBytes)>& prove) {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  socket::Channel stranger{socket::Descriptor(ends[0])};
  auto answerer =
      connect::Handshake::answer(socket::Channel(socket::Descriptor(ends[1])), {.group = 5, .from = 0}, secret);
  std::ignore = stranger.write(base::ConstBytes(hello));
  EXPECT_EQ(answerer.advance(), connect::Handshake::State::reading);
  std::array<std::byte, connect::kHelloBytes + connect::kProofBytes> answer{};
  EXPECT_EQ(stranger.read(std::span<std::byte>(answer)).bytes, answer.size());
  const base::ConstBytes both(answer);
  std::ignore =
      stranger.write(base::ConstBytes(prove(both.first(connect::kHelloBytes), both.last(connect::kProofBytes))));
  answerer.advance();
  return answerer;
}

const std::string kSecret = "a secret of sufficient length";

/// The proof of one who knows the secret.
auto right_proof(const HelloText& hello) {
  return [hello](base::ConstBytes theirs, base::ConstBytes /*proof*/) {
    std::vector<std::byte> text{std::byte{'C'}};
    text.insert(text.end(), hello.begin(), hello.end());
    text.insert(text.end(), theirs.begin(), theirs.end());
    std::vector<std::byte> proof(connect::kProofBytes);
    unsigned int size = 0;
    ::HMAC(EVP_sha256(), kSecret.data(), static_cast<int>(kSecret.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(),
           reinterpret_cast<unsigned char*>(proof.data()), &size);
    return proof;
  };
}

TEST(Stranger, ThatProvesTheSecretAndWantsThisRankComesIn) {
  const HelloText hello = hello_of_stranger(5, 0);
  EXPECT_EQ(answered(hello, kSecret, right_proof(hello)).state(), connect::Handshake::State::done);
}

TEST(Stranger, ThatDoesNotLookAtTheAnswerersProofNeedsOneOfItsOwn) {
  const HelloText hello = hello_of_stranger(5, 0);
  const auto zeros = answered(hello, kSecret, [](auto, auto) { return std::vector<std::byte>(connect::kProofBytes); });
  EXPECT_EQ(zeros.cause(), connect::Handshake::Cause::unauthorized);
  const auto echoed = answered(
      hello, kSecret, [](auto, base::ConstBytes proof) { return std::vector<std::byte>(proof.begin(), proof.end()); });
  EXPECT_EQ(echoed.cause(), connect::Handshake::Cause::unauthorized);
}

TEST(Stranger, ThatProvesTheSecretAndWantsAnotherRankOrGroupStaysOutside) {
  for (const HelloText& hello : {hello_of_stranger(5, 7), hello_of_stranger(6, 0)})
    EXPECT_EQ(answered(hello, kSecret, right_proof(hello)).cause(), connect::Handshake::Cause::stranger);
}

TEST(Stranger, OfAnotherProtocolIsShownThisOneAndNoProof) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  socket::Channel stranger{socket::Descriptor(ends[0])};
  HelloText hello = hello_of_stranger(5, 0);
  base::put(hello, 8, std::uint16_t{2});
  auto answerer =
      connect::Handshake::answer(socket::Channel(socket::Descriptor(ends[1])), {.group = 5, .from = 0}, kSecret);
  std::ignore = stranger.write(base::ConstBytes(hello));
  EXPECT_EQ(answerer.advance(), connect::Handshake::State::refused);
  EXPECT_EQ(answerer.cause(), connect::Handshake::Cause::version);
  std::array<std::byte, 2 * connect::kHelloBytes> answer{};
  EXPECT_EQ(stranger.read(std::span<std::byte>(answer)).bytes, connect::kHelloBytes);
}

/// While it exists this process can open no descriptor.
class NoDescriptors final {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int lowest = ::dup(0);  // the lowest that is free
    ::close(lowest);
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(lowest);
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST(Acceptor, RestsWhileThereAreNoDescriptorsAndThenGoesOn) {
  socket::Poller poller;
  std::vector<std::string> lines;
  Log log{LogLevel::warning, [&](LogLevel, std::string_view line) { lines.emplace_back(line); }};
  connect::Acceptor acceptor(poller, {.rank = 0, .group = 5, .secret = {}, .log = log});
  socket::Descriptor listener = socket::listen_on(socket::Address::parse("127.0.0.1:0"));
  const socket::Descriptor caller = socket::start_connection(socket::local_address(listener), {});
  test::await_readable(listener);
  acceptor.open(std::move(listener));
  const auto look = [&] {
    const auto ready = poller.wait({});
    for (const socket::Ready& one : ready) acceptor.on_ready(one);
    return ready.size();
  };
  {
    const NoDescriptors none;
    EXPECT_EQ(look(), 1U);
    EXPECT_EQ(lines, std::vector<std::string>{"cannot accept connections for now: Too many open files"});
    EXPECT_EQ(look(), 0U) << "the caller still waits, and nobody looks";
  }
  const base::Time end_of_rest = acceptor.next_deadline();
  ASSERT_NE(end_of_rest, base::kNever);
  acceptor.expire(end_of_rest);
  EXPECT_EQ(look(), 1U);
  EXPECT_TRUE(acceptor.busy()) << "the caller is let in";
}

TEST(Acceptor, StrangersDisturbNobody) {
  GroupOptions options = quiet_options();
  options.silence = 1s;
  const auto board = connect::rendezvous::make_board();
  std::vector<std::jthread> ranks;
  std::vector<std::string> problems(2);
  for (int rank = 0; rank < 2; ++rank)
    ranks.emplace_back([&, rank] {
      try {
        GroupOptions mine = options;
        mine.rank = rank;
        mine.size = 2;
        test::Listening meeting(board);
        Endpoint me = join(mine, meeting);
        std::vector<socket::Channel> strangers;
        for (int i = 0; i < 20; ++i) {
          strangers.emplace_back(socket::start_connection(socket::Address::parse(meeting.of(1 - rank).address), {}));
          const std::string noise = i % 3 == 0 ? "" : i % 3 == 1 ? "nonsense" : "SYNCOPTE\x01";
          std::ignore = strangers.back().write(std::as_bytes(std::span(noise)));
        }
        barrier(me, 1);
        std::ignore = me.links->poll(test::in(1200ms), {});
        barrier(me, 2);
      } catch (const std::exception& error) {
        problems[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  ranks.clear();
  EXPECT_EQ(problems, std::vector<std::string>(2));
}

TEST(Acceptor, APeerWithAWrongSecretStaysOutside) {
  const test::Folder folder;
  GroupOptions options = quiet_options();
  options.secret_file = test::secret_in(folder, "the secret of this very job");
  options.rank = 0;
  options.size = 2;
  options.join_timeout = 500ms;
  const auto board = connect::rendezvous::make_board();
  std::string kind;
  std::jthread joining([&] {
    try {
      const auto meeting = connect::rendezvous::in_memory(board);
      std::ignore = join(options, *meeting);
    } catch (const Error& error) {
      kind = std::string(name_of(error.kind())) + ": " + error.what();
    }
  });
  const test::ScriptedPeer peer(board, 1, 2);
  EXPECT_EQ(peer.greet(0, connect::Purpose::control, "a guess at the secret").cause(),
            connect::Handshake::Cause::unauthorized);
  joining.join();
  EXPECT_EQ(kind, "Timeout: rank 1 did not connect to rank 0");
}

TEST(Acceptor, ASecretOpensTheGroupToThoseWhoKnowIt) {
  const test::Folder folder;
  GroupOptions options = quiet_options();
  options.secret_file = test::secret_in(folder, "the secret of this very job");
  with_ranks(3, options, [](Endpoint& me) { barrier(me, 1); });
}

TEST(Join, BeyondLoopbackWithoutASecretIsMisuse) {
  const auto all = socket::interface_addresses();
  const auto outside = std::ranges::find_if(all, [](const auto& one) { return !one.second.loopback(); });
  if (outside == all.end()) GTEST_SKIP() << "this host has loopback only";
  GroupOptions options = quiet_options();
  options.rank = 0;
  options.size = 2;
  options.interface = outside->first;
  options.join_timeout = 100ms;  // nobody else comes
  const auto meeting = connect::rendezvous::in_memory(connect::rendezvous::make_board());
  EXPECT_THROW(std::ignore = join(options, *meeting), Misuse);
}

}  // namespace
}  // namespace syncopate::transport
