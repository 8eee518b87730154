// More ranks than an acceptor lets wait call it at once, and each of them is accepted.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "transport/connect/acceptor.hpp"
#include "transport/ranks.hpp"

namespace syncopate::transport::connect {
namespace {

using namespace std::chrono_literals;

constexpr int kProcesses = 4, kCallsEach = 300;  // each process has at most 1024 open descriptors
constexpr std::uint64_t kGroup = 5;

/// Runs the acceptor until `done` or the time limit.
template <class Done>
bool work(socket::Poller& poller, Acceptor& acceptor, base::Duration limit, const Done& done) {
  for (const base::Time end = test::in(limit); !done();) {
    if (std::chrono::steady_clock::now() >= end) return false;
    const base::Time next = std::min({end, acceptor.next_deadline(), test::in(100ms)});
    for (const socket::Ready& ready : poller.wait(next)) acceptor.on_ready(ready);
    acceptor.expire(std::chrono::steady_clock::now());
  }
  return true;
}

/// Ranks first + 1 to first + kCallsEach call rank 0 at the same time. Returns the number of calls that failed.
int call_all(const socket::Address& address, int first) {
  socket::Poller poller;
  Acceptor caller(poller, {.rank = 1, .group = kGroup, .secret = {}, .patience = 60s, .log = {LogLevel::off, {}}});
  for (int i = 1; i <= kCallsEach; ++i)
    caller.call(address, {}, {.version = {}, .group = kGroup, .from = first + i, .to = 0});
  std::size_t made = 0, refused = 0;
  const bool ended = work(poller, caller, 60s, [&] {
    made += caller.connections().size();
    refused += caller.refusals().size();
    return made + refused == kCallsEach;
  });
  return ended ? static_cast<int>(refused) : kCallsEach;
}

TEST(Crowd, OfMoreCallersThanMayWaitAllComeIn) {
  socket::Descriptor listener = socket::listen_on(socket::Address::parse("127.0.0.1:0"));
  const socket::Address address = socket::local_address(listener);
  std::vector<pid_t> children;
  for (int number = 0; number < kProcesses; ++number) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(call_all(address, number * kCallsEach) == 0 ? 0 : 1);
    children.push_back(child);
  }
  socket::Poller poller;
  Acceptor acceptor(poller, {.rank = 0, .group = kGroup, .secret = {}, .log = {LogLevel::off, {}}});
  acceptor.open(std::move(listener));
  std::set<int> came;
  const bool all_came = work(poller, acceptor, 60s, [&] {
    for (const Connection& connection : acceptor.connections()) came.insert(connection.hello.from);
    return came.size() == kProcesses * kCallsEach;
  });
  EXPECT_TRUE(all_came) << came.size() << " ranks were accepted";
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "a call was refused";
  }
}

}  // namespace
}  // namespace syncopate::transport::connect
