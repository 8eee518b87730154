// Links over sockets and over shared memory: every frame arrives whole and in order, whatever the sizes and posts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "transport/ranks.hpp"
#include "transport/tcp/stream.hpp"

namespace syncopate::transport {
namespace {

using test::finish;
using test::quiet_options;
using test::with_ranks;
using namespace std::chrono_literals;

std::vector<std::byte> pattern(std::size_t bytes, std::uint64_t seed) {
  std::vector<std::byte> data(bytes);
  std::uint64_t x = seed * 2 + 1;
  for (std::byte& byte : data) byte = static_cast<std::byte>((x = x * 6364136223846793005 + 1442695040888963407) >> 56);
  return data;
}

constexpr std::size_t kSizes[] = {0, 1, 63, 64, 65, 1000, 8191, 8192, 8193, 100'001, 3, 0, 1'048'577};

/// As `finish`; every other post, from the first on, is received into `in`.
void finish_into(Transport& links, std::vector<std::vector<std::byte>>& in, int count, Patience patience) {
  const base::Time end = test::in(30s);
  while (count > 0) {
    if (std::chrono::steady_clock::now() >= end) throw Timeout("posts did not finish");
    for (const Event& event : links.poll(end, patience)) {
      --count;
      if (!event.arrival) continue;
      auto& into = in.at(event.token / 2);
      ASSERT_EQ(event.bytes.size(), into.size());
      if (event.bytes.data() != into.data()) std::ranges::copy(event.bytes, into.begin());  // lent
      links.release(event.token);
    }
  }
}

/// Every rank sends every size to every other rank, all posted before the first poll.
void everyone_to_everyone(Endpoint& me, Patience patience) {
  std::vector<std::vector<std::byte>> out, in;
  std::uint64_t token = 0;
  for (int peer = 0; peer < me.size; ++peer) {
    if (peer == me.rank) continue;
    for (std::size_t i = 0; i < std::size(kSizes); ++i) {
      in.emplace_back(kSizes[i]);
      me.links->receive(peer, {1, 77}, in.back(), token++);
      out.push_back(pattern(kSizes[i], static_cast<std::uint64_t>(me.rank * 100 + peer) * 100 + i));
      me.links->send({peer, {1, 77}, out.back(), token++});
    }
  }
  finish_into(*me.links, in, static_cast<int>(token), patience);
  std::size_t at = 0;
  for (int peer = 0; peer < me.size; ++peer) {
    if (peer == me.rank) continue;
    for (std::size_t i = 0; i < std::size(kSizes); ++i, ++at)
      EXPECT_EQ(in[at], pattern(kSizes[i], static_cast<std::uint64_t>(peer * 100 + me.rank) * 100 + i))
          << "rank " << me.rank << " from " << peer << " size " << kSizes[i];
  }
}

struct Setting {
  int ranks;
  int streams;
  bool checksum;
  bool spin;
  const char* transport = "tcp";
  bool tls = false;
};

class Transports : public testing::TestWithParam<Setting> {};

TEST_P(Transports, EveryFrameArrivesWholeAndInOrder) {
  GroupOptions options = quiet_options();
  options.streams = GetParam().streams;
  options.checksum = GetParam().checksum;
  options.transport = transport_named(GetParam().transport);
  const test::Folder folder;
  if (GetParam().tls) options.secret_file = test::secret_in(folder, "the secret of this very job");
  if (GetParam().tls) options.tls = TlsChoice::on;
  const Patience patience{GetParam().spin ? base::Duration(200us) : base::Duration(0)};
  with_ranks(GetParam().ranks, options, [&](Endpoint& me) { everyone_to_everyone(me, patience); });
}

INSTANTIATE_TEST_SUITE_P(Settings, Transports,
                         testing::Values(Setting{2, 1, false, false}, Setting{2, 3, false, true},
                                         Setting{3, 1, true, true}, Setting{4, 3, true, false},
                                         Setting{5, 2, false, false}, Setting{2, 1, false, false, "shm"},
                                         Setting{2, 1, false, true, "shm"}, Setting{5, 1, false, false, "shm"},
                                         Setting{4, 1, false, true, "auto"}, Setting{2, 1, false, false, "tcp", true},
                                         Setting{3, 3, true, true, "tcp", true},
                                         Setting{4, 1, false, false, "auto", true}),
                         [](const auto& one) {
                           return fmt::format("{}Ranks{}Streams{}{}{}{}", one.param.transport, one.param.ranks,
                                              one.param.streams, one.param.checksum ? "Checksum" : "",
                                              one.param.spin ? "Spin" : "", one.param.tls ? "Tls" : "");
                         });

class Links : public testing::TestWithParam<const char*> {
 protected:
  GroupOptions options() const {
    GroupOptions options = quiet_options();
    const bool tls = GetParam() == std::string_view("tls");
    options.transport = transport_named(tls ? "tcp" : GetParam());
    if (tls) options.secret_file = test::secret_in(folder_, "the secret of this very job");
    if (tls) options.tls = TlsChoice::on;
    return options;
  }

 private:
  test::Folder folder_;
};
INSTANTIATE_TEST_SUITE_P(Over, Links, testing::Values("tcp", "tls", "shm"), [](const auto& one) { return one.param; });

TEST(TcpLinks, ALargeFrameCrossesBothWaysAtOnce) {
  constexpr std::size_t kBytes = 8 << 20;
  for (const int streams : {1, 3}) {
    GroupOptions options = quiet_options();
    options.streams = streams;
    with_ranks(2, options, [&](Endpoint& me) {
      const auto out = pattern(kBytes, static_cast<std::uint64_t>(me.rank));
      std::vector<std::byte> in(kBytes);
      const int peer = 1 - me.rank;
      for (std::uint64_t round = 1; round <= 4; ++round) {
        me.links->send({peer, {round, 5}, out, 1});
        me.links->receive(peer, {round, 5}, in, 2);
        finish(*me.links, 2);
        EXPECT_EQ(in, pattern(kBytes, static_cast<std::uint64_t>(peer)));
      }
    });
  }
}

TEST_P(Links, ManySmallFramesKeepTheirOrder) {
  constexpr int kFrames = 5000;
  with_ranks(2, options(), [](Endpoint& me) {
    std::vector<std::uint32_t> numbers(kFrames);
    std::iota(numbers.begin(), numbers.end(), 0u);
    std::vector<std::uint32_t> got(kFrames);
    for (std::size_t i = 0; i < kFrames; ++i) {
      if (me.rank == 0)
        me.links->send({1, {1, 1}, std::as_bytes(std::span(&numbers[i], 1)), i});
      else
        me.links->receive(0, {1, 1}, std::as_writable_bytes(std::span(&got[i], 1)), i);
    }
    finish(*me.links, kFrames);
    if (me.rank == 1) {
      EXPECT_EQ(got, numbers);
    }
  });
}

TEST_P(Links, AReceivePostedLongAfterArrivalIsServed) {
  with_ranks(2, options(), [](Endpoint& me) {
    const auto first = pattern(100, 1), second = pattern(300'000, 2);
    if (me.rank == 0) {  // frames of operations 1 and 2 leave before rank 1 posts their receives
      me.links->send({1, {1, 1}, first, 1});
      me.links->send({1, {2, 1}, second, 2});
      std::byte done;
      me.links->receive(1, {3, 1}, {&done, 1}, 3);
      finish(*me.links, 3);
    } else {
      std::vector<std::byte> a(100), b(300'000);
      me.links->receive(0, {1, 1}, a, 1);
      finish(*me.links, 1);
      EXPECT_TRUE(me.links->poll(test::in(20ms), {}).empty()) << "nothing is posted, so nothing may finish";
      me.links->receive(0, {2, 1}, b, 2);
      finish(*me.links, 1);
      EXPECT_EQ(a, first);
      EXPECT_EQ(b, second);
      const std::byte done{1};
      me.links->send({0, {3, 1}, {&done, 1}, 3});
      finish(*me.links, 1);
    }
  });
}

TEST_P(Links, AnIdlePollEndsAtItsDeadlineAndAtAWake) {
  with_ranks(1, options(), [](Endpoint& me) {
    EXPECT_TRUE(me.links->poll(test::in(5ms), {}).empty());
    std::jthread other([&] { me.links->wake(); });
    EXPECT_TRUE(me.links->poll(base::kNever, {}).empty());
    other.join();
    me.links->wake();
    EXPECT_TRUE(me.links->poll(base::kNever, Patience{1h}).empty());
  });
}

TEST_P(Links, TrafficCountsHeaders) {
  with_ranks(2, options(), [](Endpoint& me) {
    std::vector<std::byte> data(1000);
    if (me.rank == 0)
      me.links->send({1, {1, 1}, data, 1});
    else
      me.links->receive(0, {1, 1}, data, 1);
    finish(*me.links, 1);
    const auto [sent, received] = me.links->traffic();
    const std::uint64_t whole = me.kind == "tcp" ? 1040 : 1064;
    EXPECT_EQ(sent, me.rank == 0 ? whole : 0);
    EXPECT_EQ(received, me.rank == 0 ? 0 : whole);
  });
}

TEST_P(Links, OnlyOtherRanksOfTheGroupArePeers) {
  with_ranks(2, options(), [](Endpoint& me) {
    EXPECT_THROW(me.links->send({me.rank, {1, 1}, {}, 1}), Misuse);
    EXPECT_THROW(me.links->receive(2, {1, 1}, {}, 1), Misuse);
    EXPECT_THROW(me.links->receive(-1, {1, 1}, {}, 1), Misuse);
  });
}

TEST(TcpLinks, WorkOverIpv6AndTellThatRanksShareAHost) {
  GroupOptions options = quiet_options();
  options.interface = "::1";
  try {
    std::ignore = socket::listen_on(socket::interface_address("::1"));
  } catch (const SystemFailure&) {
    GTEST_SKIP() << "no IPv6 here";
  }
  with_ranks(3, options, [](Endpoint& me) {
    everyone_to_everyone(me, {});
    ASSERT_EQ(me.hosts.size(), 3u);
    EXPECT_EQ(me.hosts[0], me.hosts[2]);
    EXPECT_EQ(me.kind, "tcp");
  });
}

TEST_P(Links, ConnectionsAreMadeWhenFirstNeededAndAllDescriptorsAreGivenBack) {
  const auto open_now = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const auto round = [&] { with_ranks(5, options(), [](Endpoint& me) { everyone_to_everyone(me, {}); }); };
  round();  // the process keeps the descriptor by which its threads wake each other
  const auto before = open_now();
  for (int rounds = 0; rounds < 3; ++rounds) {
    round();
    EXPECT_EQ(open_now(), before);
  }
}

TEST(TcpLinks, JoinThroughOptionsAndEnvironment) {
  const test::Folder folder;
  std::string line;
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < 2; ++rank)
    ranks.emplace_back([&, rank] {
      GroupOptions options = quiet_options();
      if (rank == 0)
        options.log = {LogLevel::info, [&](LogLevel, std::string_view text) { line = line.empty() ? text : line; }};
      const base::Environment environment({{"SYNCOPATE_RANK", std::to_string(rank)},
                                           {"SYNCOPATE_SIZE", "2"},
                                           {"SYNCOPATE_STREAMS", rank == 0 ? "2" : "1"},
                                           {"SYNCOPATE_RENDEZVOUS", "file://" + folder.path}});
      Endpoint me = join_processes(options, environment);
      everyone_to_everyone(me, {});  // rank 0's number of streams holds for both
    });
  ranks.clear();
  EXPECT_TRUE(test::contains(line, "rank 0 of 2 (from SYNCOPATE_RANK/SYNCOPATE_SIZE)")) << line;
}

TEST(TcpLinks, AnOpenRendezvousWithoutASecretIsRefused) {
  GroupOptions options = quiet_options();
  options.rank = 0;
  options.size = 2;
  options.rendezvous = "tcp://10.255.255.1:29500";
  EXPECT_THROW(std::ignore = join_processes(options, {}), Misuse);
  options.rendezvous = "udp://127.0.0.1:29500";
  EXPECT_THROW(std::ignore = join_processes(options, {}), Misuse);
}

}  // namespace
}  // namespace syncopate::transport
