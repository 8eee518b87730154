// A process with the secret that sends malformed messages at the rendezvous is cut off, and the ranks still join.
#include <gtest/gtest.h>

#include "transport/connect/hello.hpp"
#include "transport/connect/rendezvous/rendezvous.hpp"

namespace syncopate::transport::connect::rendezvous {
namespace {

using test::say;
using test::Written;
using namespace std::chrono_literals;
namespace hello = test::hello;

/// A request as rank 1 of 2 would make it.
std::string request(std::int32_t size, std::int64_t patience_ms, std::string_view text) {
  return test::message(Written().number(size).number(patience_ms).text(text));
}

constexpr auto kHuge = std::uint32_t{0xffffffff};

const std::string kNonsense[] = {
    Written().number(kHuge).bytes,
    Written().number(std::uint32_t{1} << 30).raw("and then nothing").bytes,
    test::message(Written()),
    test::message(Written().number(2).number(std::int64_t{1000}).number(kHuge)),
    test::message(Written().number(2).number(std::int64_t{1000}).text("I am 1").raw("x")),
    request(2, 1000, "I am 1") + request(2, 1000, "I am 1 again"),
    request(2, 1000, std::string(1 << 20, 'x')),
};

/// A connection to rank 0 that has passed the handshake.
socket::Channel introduced(const socket::Address& address) {
  const hello::Fields mine{.group = 0, .from = 1, .to = 0, .purpose = 1};
  while (true) {  // rank 0 may not listen yet
    socket::Channel channel(socket::start_connection(address, {}));
    pollfd one{channel.number(), POLLOUT, 0};
    ::poll(&one, 1, 10'000);
    if (!say(channel, hello::first_words(mine))) continue;
    const auto heard = [&](std::size_t count) {
      return test::hear(channel, [=](const std::string& text) { return text.size() >= count; });
    };
    const std::string answer = heard(hello::kAnswerBytes);
    if (answer.size() != hello::kAnswerBytes) continue;
    EXPECT_TRUE(say(channel, hello::last_words(mine, answer)));
    EXPECT_EQ(heard(hello::kProofBytes), hello::welcome(mine, answer));
    return channel;
  }
}

TEST(TcpRendezvous, CutsOffWhoSpeaksNonsenseAndGoesOn) {
  const socket::Address address = socket::local_address(socket::listen_on(socket::Address::parse("127.0.0.1:0")));
  const auto meet = [&](int rank) {
    const auto meeting = over_tcp({address, "", {.level = LogLevel::off, .sink = {}}});
    return meeting->exchange({rank, 2}, "I am " + std::to_string(rank), test::in(60s));
  };
  const std::vector<std::string> all{"I am 0", "I am 1"};
  const std::jthread host([&] { EXPECT_EQ(meet(0), all); });
  for (const std::string& nonsense : kNonsense) {
    socket::Channel stranger = introduced(address);
    std::ignore = say(stranger, nonsense);
    EXPECT_TRUE(test::is_cut_off(stranger)) << nonsense.size() << " bytes";
  }
  EXPECT_EQ(meet(1), all);
}

}  // namespace
}  // namespace syncopate::transport::connect::rendezvous
