// The acceptor: a peer that knows the job's secret is accepted, and strangers disturb nobody.
#include <gtest/gtest.h>

#include "ranks.hpp"

namespace syncopate::transport {
namespace {

using test::barrier;
using test::quiet_options;
using test::with_ranks;
using namespace std::chrono_literals;

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

}  // namespace
}  // namespace syncopate::transport
