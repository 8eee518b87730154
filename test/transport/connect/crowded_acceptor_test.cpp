// The acceptor among strangers: it cuts off silent callers, and repeats a call that was cut off.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <functional>

#include "transport/connect/acceptor.hpp"
#include "transport/ranks.hpp"

namespace syncopate::transport::connect {
namespace {

using Cause = Handshake::Cause;

TEST(Acceptor, ASilentStrangerIsCutOffAndLogged) {
  socket::Poller poller;
  std::string line;
  Log log{LogLevel::info, [&](LogLevel, std::string_view text) { line = text; }};
  Acceptor acceptor(poller,
                    {.rank = 0, .group = 5, .secret = {}, .stranger_patience = std::chrono::hours(1), .log = log});
  socket::Descriptor listener = socket::listen_on(socket::Address::parse("127.0.0.1:0"));
  const socket::Descriptor stranger = socket::start_connection(socket::local_address(listener), {});
  acceptor.open(std::move(listener));
  while (acceptor.next_deadline() == base::kNever)
    for (const socket::Ready& ready : poller.wait(test::in(std::chrono::seconds(10)))) acceptor.on_ready(ready);
  EXPECT_TRUE(acceptor.connections().empty());
  acceptor.expire(test::in(std::chrono::hours(2)));
  EXPECT_EQ(acceptor.next_deadline(), base::kNever);
  EXPECT_NE(line.find("in time"), std::string::npos) << line;
  test::await_readable(stranger);
  char byte;
  EXPECT_LE(::recv(stranger.number(), &byte, 1, 0), 0) << "the connection is closed";
}

/// Runs the acceptor until `done`, or for 30 s. Returns whether it was done.
bool work(socket::Poller& poller, Acceptor& acceptor, const std::function<bool()>& done) {
  for (const base::Time end = test::in(std::chrono::seconds(30)); !done();) {
    if (std::chrono::steady_clock::now() >= end) return false;
    for (const socket::Ready& ready : poller.wait(test::in(std::chrono::milliseconds(5)))) acceptor.on_ready(ready);
    acceptor.expire(std::chrono::steady_clock::now());
  }
  return true;
}

bool comes_to_a_connection(socket::Poller& poller, Acceptor& acceptor) {
  std::vector<Connection> made;
  return work(poller, acceptor, [&] {
    for (Connection& one : acceptor.connections()) made.push_back(std::move(one));
    return !made.empty();
  });
}

TEST(Acceptor, WhenStrangersFillItTheOldestGoesAndAnHonestRankComesIn) {
  socket::Poller poller;
  Acceptor acceptor(poller, {.rank = 0, .group = 5, .secret = {}, .most_waiting = 4, .log = {}});
  socket::Descriptor listener = socket::listen_on(socket::Address::parse("127.0.0.1:0"));
  const socket::Address address = socket::local_address(listener);
  acceptor.open(std::move(listener));
  std::vector<socket::Descriptor> strangers;
  for (int i = 0; i < 9; ++i) strangers.push_back(socket::start_connection(address, {}));
  bool has_called = false;
  std::jthread honest([&] {
    socket::Poller own;
    Acceptor caller(own, {.rank = 1, .group = 5, .secret = {}, .log = {}});
    caller.call(address, {}, {.group = 5, .from = 1, .to = 0});
    has_called = comes_to_a_connection(own, caller);
  });
  EXPECT_TRUE(comes_to_a_connection(poller, acceptor));
  honest.join();
  EXPECT_TRUE(has_called);
  char byte;
  test::await_readable(strangers.front());
  EXPECT_EQ(::recv(strangers.front().number(), &byte, 1, MSG_DONTWAIT), 0) << "the first stranger was cut off";
}

TEST(Acceptor, ACallThatIsCutOffIsRepeated) {
  socket::Poller poller;
  Acceptor caller(poller, {.rank = 1, .group = 5, .secret = {}, .log = {}});
  socket::Descriptor listener = socket::listen_on(socket::Address::parse("127.0.0.1:0"));
  caller.call(socket::local_address(listener), {}, {.group = 5, .from = 1, .to = 0});
  test::await_readable(listener);
  { const socket::Descriptor cut = socket::accept_from(listener); }
  EXPECT_TRUE(work(poller, caller, [&] { return static_cast<bool>(socket::accept_from(listener)); }))
      << "the call was not repeated";
  EXPECT_TRUE(caller.refusals().empty());
}

TEST(Acceptor, LeavesTheProgramItsDescriptors) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 64;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  socket::Poller poller;
  std::size_t cut_off = 0;
  Log log{LogLevel::info, [&](LogLevel, std::string_view) { ++cut_off; }};
  Acceptor acceptor(poller, {.rank = 0, .group = 5, .secret = {}, .log = log});
  std::ignore = ::setrlimit(RLIMIT_NOFILE, &before);
  socket::Descriptor listener = socket::listen_on(socket::Address::parse("127.0.0.1:0"));
  const socket::Address address = socket::local_address(listener);
  acceptor.open(std::move(listener));
  std::vector<socket::Descriptor> strangers;
  for (int i = 0; i < 40; ++i) strangers.push_back(socket::start_connection(address, {}));
  EXPECT_TRUE(work(poller, acceptor, [&] { return cut_off >= 40 - 16; })) << cut_off;
  EXPECT_EQ(cut_off, 40U - 16U) << "a quarter of 64 descriptors is for strangers";
}

TEST(Acceptor, AnUnreachableAddressBecomesARefusal) {
  socket::Poller poller;
  Acceptor acceptor(poller, {.rank = 1, .group = 5, .secret = {}, .log = {}});
  socket::Address nobody;
  {
    const socket::Descriptor closed = socket::listen_on(socket::Address::parse("127.0.0.1:0"));
    nobody = socket::local_address(closed);
  }
  acceptor.call(nobody, {}, {.group = 5, .from = 1, .to = 0});
  std::vector<Refusal> refusals = acceptor.refusals();
  for (const base::Time end = test::in(std::chrono::seconds(10));
       refusals.empty() && std::chrono::steady_clock::now() < end;) {
    for (const socket::Ready& ready : poller.wait(end)) acceptor.on_ready(ready);
    refusals = acceptor.refusals();
  }
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0].cause, Cause::unreachable);
  EXPECT_NE(refusals[0].reason.find(nobody.text()), std::string::npos) << refusals[0].reason;
}

}  // namespace
}  // namespace syncopate::transport::connect
