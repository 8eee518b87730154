// The acceptor: a peer with the job's secret is accepted, and strangers do not disturb the group.
#include "transport/connect/acceptor.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "thrown.hpp"
#include "transport/ranks.hpp"

namespace syncopate::transport {
namespace {

using test::barrier;
using test::quiet_options;
using test::with_ranks;
using namespace std::chrono_literals;

/// While it exists this process can open no descriptor.
class NoDescriptors final {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int lowest = ::dup(0);  // the lowest free one
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
    EXPECT_EQ(look(), 0U) << "the caller still waits, and is not accepted";
    EXPECT_EQ(acceptor.exhaustion(), "") << "it may be over soon";
    for (int i = 0; i < 12; ++i) {
      while (poller.wait(acceptor.next_deadline()).empty()) acceptor.expire(std::chrono::steady_clock::now());
      EXPECT_EQ(look(), 1U);
    }
    const std::string why = "cannot accept connections: Too many open files; raise the limit (ulimit -n)";
    EXPECT_EQ(acceptor.exhaustion(), why);
    EXPECT_EQ(lines, std::vector<std::string>{why}) << "once, not at every attempt";
  }
  const base::Time end_of_rest = acceptor.next_deadline();
  ASSERT_NE(end_of_rest, base::kNever);
  acceptor.expire(end_of_rest);
  EXPECT_EQ(look(), 1U);
  EXPECT_TRUE(acceptor.busy()) << "the caller is accepted";
  EXPECT_EQ(acceptor.exhaustion(), "");
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
    const auto meeting = connect::rendezvous::in_memory(board);
    kind = syncopate::test::kind_thrown([&] { return join(options, *meeting); });
  });
  test::Listening meeting(board);
  meeting.secret = "the secret of this very job";
  const connect::PeerInfo mine{
      .version = std::string(version()), .address = "127.0.0.1:1", .host = socket::host_identity()};
  std::ignore = meeting.exchange({1, 2}, connect::seal(encode(mine), {1, 2}, meeting.secret), test::in(30s));
  const connect::Hello hello{.version = {}, .group = meeting.of(0).group, .from = 1, .to = 0};
  auto caller = connect::Handshake::call(
      socket::Channel(socket::start_connection(socket::Address::parse(meeting.of(0).address), {})), hello,
      "a guess at the secret", meeting.digest());
  for (const base::Time end = test::in(10s);
       caller.advance() != connect::Handshake::State::refused && std::chrono::steady_clock::now() < end;)
    test::await_readable(caller.channel().socket());
  EXPECT_EQ(caller.cause(), connect::Handshake::Cause::unauthorized) << caller.reason();
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
  options.join_timeout = 100ms;  // no other rank comes
  const auto meeting = connect::rendezvous::in_memory(connect::rendezvous::make_board());
  EXPECT_THROW(std::ignore = join(options, *meeting), Misuse);
}

}  // namespace
}  // namespace syncopate::transport
