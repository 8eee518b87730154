// Rendezvous in memory, in a folder, over TCP: all texts reach all ranks, or every rank learns which are missing.
#include "transport/connect/rendezvous/rendezvous.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "transport/ranks.hpp"
#include "transport/socket/socket.hpp"

namespace syncopate::transport::connect::rendezvous {
namespace {

using namespace std::chrono_literals;
using Make = std::function<std::unique_ptr<Rendezvous>()>;

socket::Address free_address(const char* host = "127.0.0.1:0") {
  return socket::local_address(socket::listen_on(socket::Address::parse(host)));
}

struct Outcome {
  std::vector<std::string> texts;
  std::string kind, message;
};

/// The given ranks join at the same time; the result is by position in `ranks`.
std::vector<Outcome> join(const std::vector<int>& ranks, int size, const Make& make, base::Duration patience = 30s) {
  std::vector<Outcome> outcomes(ranks.size());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    threads.emplace_back([&, i] {
      try {
        outcomes[i].texts = make()->exchange({ranks[i], size}, "I am " + std::to_string(ranks[i]), test::in(patience));
      } catch (const Error& error) {
        outcomes[i].kind = name_of(error.kind());
        outcomes[i].message = error.what();
      }
    });
  threads.clear();
  return outcomes;
}

struct Kind {
  const char* name;
  std::function<Make(const std::string& folder)> prepare;
};

class EveryRendezvous : public testing::TestWithParam<Kind> {
 protected:
  Make make() { return GetParam().prepare(folder_.path); }
  test::Folder folder_;
};

TEST_P(EveryRendezvous, EveryRankGetsAllTextsByRank) {
  for (const auto& outcome : join({3, 0, 2, 1}, 4, make())) {
    EXPECT_EQ(outcome.kind, "") << outcome.message;
    EXPECT_EQ(outcome.texts, (std::vector<std::string>{"I am 0", "I am 1", "I am 2", "I am 3"}));
  }
}

TEST_P(EveryRendezvous, OneRankMeetsItself) {
  EXPECT_EQ(join({0}, 1, make())[0].texts, std::vector<std::string>{"I am 0"});
}

TEST_P(EveryRendezvous, TheMissingRanksAreNamedToAll) {
  for (const auto& outcome : join({0, 2}, 5, make(), 400ms)) {
    EXPECT_EQ(outcome.kind, "Timeout") << outcome.message;
    EXPECT_TRUE(test::contains(outcome.message, "ranks 1, 3 and 4 did not come")) << outcome.message;
  }
}

TEST_P(EveryRendezvous, ARankTakenTwiceIsNamed) {
  bool named = false;
  for (const auto& outcome : join({0, 1, 1}, 3, make(), 500ms)) {
    EXPECT_NE(outcome.kind, "");
    named = named || (outcome.kind == "Misuse" && test::contains(outcome.message, "rank 1"));
    named = named || (outcome.kind == "Misuse" && test::contains(outcome.message, "rank-1"));
  }
  EXPECT_TRUE(named);
}

const Kind kKinds[] = {
    {"Memory", [](const std::string&) -> Make { return [board = make_board()] { return in_memory(board); }; }},
    {"Folder", [](const std::string& folder) -> Make { return [folder] { return in_folder(folder + "/job"); }; }},
    {"Tcp", [](const std::string&) -> Make {
       return [address = free_address()] { return over_tcp({address, "", {.level = LogLevel::off, .sink = {}}}); };
     }}};

INSTANTIATE_TEST_SUITE_P(Rendezvous, EveryRendezvous, testing::ValuesIn(kKinds),
                         [](const auto& one) { return one.param.name; });

TEST(FolderRendezvous, AUsedFolderIsRefused) {
  const test::Folder folder;
  EXPECT_EQ(join({0, 1}, 2, [&] { return in_folder(folder.path); })[0].kind, "");
  for (const auto& outcome : join({0, 1}, 2, [&] { return in_folder(folder.path); })) {
    EXPECT_EQ(outcome.kind, "Misuse");
    EXPECT_TRUE(test::contains(outcome.message, "empty or new folder")) << outcome.message;
  }
}

TEST(FolderRendezvous, AFailedJobLeavesTheFolderUsable) {
  const test::Folder folder;
  EXPECT_EQ(join(
                {1}, 2, [&] { return in_folder(folder.path); }, 50ms)[0]
                .kind,
            "Timeout");
  for (const Outcome& outcome : join({0, 1}, 2, [&] { return in_folder(folder.path); }))
    EXPECT_EQ(outcome.kind, "") << outcome.message;
}

TEST(FolderRendezvous, ForeignFilesAreRefused) {
  const test::Folder folder;
  std::ofstream(folder.path + "/rank-0") << "something else";
  EXPECT_EQ(join({1}, 2, [&] { return in_folder(folder.path); })[0].kind, "Corrupt");
}

TEST(FolderRendezvous, AFolderThatOthersMayWriteToIsRefused) {
  const test::Folder folder;
  using fs = std::filesystem::perms;
  for (const fs others : {fs::others_write, fs::group_write}) {
    std::filesystem::permissions(folder.path, fs::owner_all | others);
    const Outcome outcome = join({0}, 1, [&] { return in_folder(folder.path); })[0];
    EXPECT_EQ(outcome.kind, "Misuse");
    EXPECT_TRUE(test::contains(outcome.message, "chmod go-w " + folder.path)) << outcome.message;
  }
  std::filesystem::permissions(folder.path, fs::owner_all | fs::group_read | fs::others_exec);
  EXPECT_EQ(join({0}, 1, [&] { return in_folder(folder.path); })[0].kind, "") << "others may read it";
}

TEST(FolderRendezvous, AFolderOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  const test::Folder folder;
  ASSERT_EQ(::chown(folder.path.c_str(), 65534, 65534), 0);
  const Outcome outcome = join({0}, 1, [&] { return in_folder(folder.path); })[0];
  EXPECT_EQ(outcome.kind, "Misuse");
  EXPECT_TRUE(test::contains(outcome.message, "belongs to user 65534")) << outcome.message;
}

TEST(FolderRendezvous, WhatItMakesIsTheOwnersAloneWhateverTheUmask) {
  const test::Folder folder;
  const mode_t before = ::umask(0);
  const std::string path = folder.path + "/above/job";
  EXPECT_EQ(join({0}, 1, [&] { return in_folder(path); })[0].kind, "");
  ::umask(before);
  using fs = std::filesystem::perms;
  for (const char* name : {"", "/rank-0"})
    EXPECT_EQ(std::filesystem::status(path + name).permissions() & (fs::group_write | fs::others_write), fs::none)
        << name;
}

TEST(FolderRendezvous, RanksMustAgreeOnTheSize) {
  const test::Folder folder;
  std::vector<Outcome> two(2);
  two[0] = join(
      {0}, 3, [&] { return in_folder(folder.path); }, 50ms)[0];
  EXPECT_EQ(two[0].kind, "Timeout");
  std::ofstream(folder.path + "/rank-0") << "syncopate rendezvous 1\nsize 3\nx";
  two[1] = join({1}, 2, [&] { return in_folder(folder.path); })[0];
  EXPECT_EQ(two[1].kind, "Misuse");
  EXPECT_TRUE(test::contains(two[1].message, "rank 0 has a job of 3 ranks")) << two[1].message;
}

TEST(LocalRendezvous, RanksMeetByTheNameOfTheirJob) {
  const std::string name = fmt::format("test-{}", ::getpid());
  const Make make = [&] { return over_tcp({local_meeting(name), {}, {}}); };
  for (const auto& outcome : join({1, 0, 2}, 3, make)) {
    EXPECT_EQ(outcome.kind, "") << outcome.message;
    EXPECT_EQ(outcome.texts, (std::vector<std::string>{"I am 0", "I am 1", "I am 2"}));
  }
  for (const auto& outcome : join({0, 1}, 2, make)) EXPECT_EQ(outcome.kind, "") << "a job may meet again";
}

TEST(LocalRendezvous, RanksMeetByTheProcessBehindASocketTheyInherited) {
  std::array<int, 2> pair{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
  const socket::Descriptor here(pair[0]), there(pair[1]);
  const auto meeting = [](const socket::Descriptor& at) { return local_meeting(fmt::format("fd:{}", at.number())); };
  EXPECT_EQ(meeting(here), meeting(there)) << "both were opened by this process";
  EXPECT_TRUE(test::contains(meeting(here).text(), std::to_string(::getpid()))) << meeting(here).text();
  const socket::Descriptor tcp = socket::listen_on(socket::Address::parse("127.0.0.1:0"));
  EXPECT_THROW(std::ignore = meeting(tcp), Misuse);
  for (const char* name : {"fd:", "fd:x", "fd:1000000"})
    EXPECT_THROW(std::ignore = local_meeting(name), Misuse) << name;
}

TEST(TcpRendezvous, AWrongSecretIsToldAtOnce) {
  const socket::Address address = free_address();
  std::jthread host([&] {
    try {
      std::ignore = over_tcp({address, "the right secret, surely", {.level = LogLevel::off, .sink = {}}})
                        ->exchange({0, 2}, "", test::in(1s));
    } catch (const Timeout&) {
    }
  });
  EXPECT_EQ(join({1}, 2, [&] { return over_tcp({address, "a wrong secret, surely", {}}); })[0].kind, "Unauthorized");
}

TEST(TcpRendezvous, TlsOnOneSideIsMisuseOnBoth) {
  for (const bool host_has_it : {true, false}) {
    const socket::Address address = free_address();
    const std::string secret = "the secret of this very job";
    std::vector<Outcome> outcomes(2);
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < 2; ++rank)
      ranks.emplace_back([&, rank] {
        const bool tls = host_has_it == (rank == 0);
        const Log quiet{.level = LogLevel::off, .sink = {}};
        outcomes[static_cast<std::size_t>(rank)] = join({rank}, 2, [&] {
          return over_tcp({address, secret, quiet, tls});
        })[0];
      });
    ranks.clear();
    for (const Outcome& outcome : outcomes) {
      EXPECT_EQ(outcome.kind, "Misuse") << outcome.message;
      EXPECT_TRUE(test::contains(outcome.message, "SYNCOPATE_TLS")) << outcome.message;
    }
  }
}

TEST(TcpRendezvous, RanksMeetUnderTls) {
  const socket::Address address = free_address();
  const Make make = [&] { return over_tcp({address, "the secret of this very job", {}, true}); };
  for (const auto& outcome : join({2, 0, 1}, 3, make)) {
    EXPECT_EQ(outcome.kind, "") << outcome.message;
    EXPECT_EQ(outcome.texts, (std::vector<std::string>{"I am 0", "I am 1", "I am 2"}));
  }
}

TEST(TcpRendezvous, StrangersDoNotDisturb) {
  const socket::Address address = free_address();
  std::vector<Outcome> outcomes;
  std::jthread host([&] {
    outcomes = join({0}, 2, [&] { return over_tcp({address, "", {.level = LogLevel::off, .sink = {}}}); });
  });
  std::vector<socket::Channel> strangers;
  while (strangers.size() < 3) {
    socket::Channel stranger(socket::start_connection(address, {}));
    pollfd one{stranger.number(), POLLOUT, 0};
    ::poll(&one, 1, 10'000);
    const std::string noise = strangers.empty() ? "GET / HTTP/1.1\r\n\r\n" : "SYNCOPTE and then nothing";
    if (stranger.write(std::as_bytes(std::span(noise))).outcome == socket::Moved::Outcome::some)
      strangers.push_back(std::move(stranger));
  }
  EXPECT_EQ(join({1}, 2, [&] { return over_tcp({address, "", {}}); })[0].kind, "");
  host.join();
  EXPECT_EQ(outcomes[0].kind, "") << outcomes[0].message;
}

TEST(TcpRendezvous, WorksOverIpv6) {
  socket::Address address;
  try {
    address = free_address("[::1]:0");
  } catch (const SystemFailure&) {
    GTEST_SKIP() << "no IPv6 here";
  }
  for (const auto& outcome : join({0, 1, 2}, 3, [&] { return over_tcp({address, "", {}}); }))
    EXPECT_EQ(outcome.kind, "");
}

TEST(TcpRendezvous, EndsInTimeForTheLeastPatientRankInWhateverOrderTheyCome) {
  const socket::Address address = free_address();
  const auto make = [&] { return over_tcp({address, "", {}}); };
  std::vector<Outcome> hasty;
  std::jthread thread([&] { hasty = join({1}, 9, make, 2s); });
  const std::vector<Outcome> patient = join({0, 2, 3, 4, 5, 6, 7}, 9, make, 20s);
  thread.join();
  for (const std::vector<Outcome>& outcomes : {hasty, patient})
    for (const Outcome& outcome : outcomes) {
      EXPECT_EQ(outcome.kind, "Timeout") << outcome.message;
      EXPECT_TRUE(test::contains(outcome.message, "rank 8 did not come")) << outcome.message;
    }
}

TEST(TcpRendezvous, RanksMustAgreeOnTheSize) {
  const socket::Address address = free_address();
  Outcome three;
  std::jthread other([&] { three = join({1}, 3, [&] { return over_tcp({address, "", {}}); })[0]; });
  const Outcome two = join({0}, 2, [&] { return over_tcp({address, "", {}}); })[0];
  other.join();
  EXPECT_EQ(two.kind, "Misuse");
  EXPECT_EQ(three.kind, "Misuse");
  EXPECT_TRUE(test::contains(three.message, "rank 1 has a job of 3 ranks")) << three.message;
}

TEST(MissingRanks, LongListsAreCutShort) {
  EXPECT_EQ(missing_ranks({true, false, true}), "rank 1");
  EXPECT_EQ(missing_ranks(std::vector<bool>(100)),
            "ranks 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 and 84 more");
}

}  // namespace
}  // namespace syncopate::transport::connect::rendezvous
