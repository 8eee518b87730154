// Crowds: strangers open more connections than a server has descriptors for, and members still get in.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cstdlib>
#include <vector>

#include "service/child.hpp"
#include "service/ends.hpp"

namespace syncopate::server::streams {
namespace {

using namespace test;
using syncopate::test::Child;

constexpr char kCrowdAddress[] = "SYNCOPATE_TEST_CROWD_ADDRESS";

/// A connection of a caller without the secret.
class CrowdCaller final {
 public:
  explicit CrowdCaller(const std::string& address) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const std::size_t colon = address.rfind(':');
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
    ::inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr);
    is_connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  ~CrowdCaller() { ::close(socket_); }
  CrowdCaller(CrowdCaller&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), is_connected_(other.is_connected_) {}
  CrowdCaller& operator=(CrowdCaller&&) = delete;

  [[nodiscard]] bool is_connected() const { return is_connected_; }
  void say(std::string_view text) const { std::ignore = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL); }
  /// Returns when the server has closed the connection.
  void await_end() const {
    char byte = 0;
    while (::recv(socket_, &byte, 1, 0) > 0) {
    }
  }

 private:
  int socket_;
  bool is_connected_ = false;
};

/// Limits this process's descriptors to `most` while it exists.
class DescriptorLimit final {
 public:
  explicit DescriptorLimit(rlim_t most) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit limit{most, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

 private:
  rlimit before_{};
};

/// A port that is free at this time.
std::string free_address() {
  const Server server;
  return server.address();
}

void expect_a_member_gets_in(const std::string& address) {
  Record record;
  const auto stream = dial(address, end_named("worker 0"), record.events());
  stream->send(0, head_of("hello"), {});
  EXPECT_EQ(record.await_messages(1).at(0), "hello");
}

/// Not a test: the body of a Child.
TEST(Crowd, DISABLED_Server) {
  const DescriptorLimit limit(100);
  const Server server({std::getenv(kCrowdAddress)}, end_named("server 0"),
                      [](Stream& stream, const std::string& message) { stream.send(0, head_of(message), {}); });
  syncopate::test::wait_for_the_end();
}

TEST(Crowds, OfMoreConnectionsThanAServerHasDescriptorsKeepNobodyOut) {
  const std::string address = free_address();
  const Child server("Crowd.DISABLED_Server", {{kCrowdAddress, address}});
  expect_a_member_gets_in(address);
  for (const std::string_view first : {"", "S"}) {  // silent, or begins as a member does and then stays silent
    std::vector<CrowdCaller> crowd;
    for (int i = 0; i < 300; ++i) {
      crowd.emplace_back(address);
      EXPECT_TRUE(crowd.back().is_connected());
      if (!first.empty()) crowd.back().say(first);
    }
    expect_a_member_gets_in(address);
    crowd.clear();
    expect_a_member_gets_in(address);
  }
}

TEST(Crowds, LoseTheirOldestConnections) {
  std::unique_ptr<Server> server;
  {
    const DescriptorLimit limit(100);  // a quarter is for handshakes
    server = std::make_unique<Server>();
  }
  for (const std::string_view first : {"", "S"}) {
    std::vector<CrowdCaller> crowd;
    for (int i = 0; i < 40; ++i) {
      crowd.emplace_back(server->address());
      if (!first.empty()) crowd.back().say(first);
    }
    crowd.front().await_end();
    crowd.at(14).await_end();
  }
}

/// A connection that has proved the secret is not ended with those that have not.
TEST(Crowds, DoNotEndTheStreamsOfMembers) {
  for (const char* address : {"127.0.0.1:0", "[::1]:0"}) {
    EndOptions options = end_named("server 0");
    options.patience = 500ms;
    Server server({address, "127.0.0.1:0"}, options);
    const auto stream = dial(server.address(), end_named("worker 0"), {});
    stream->send(0, head_of("before"), {});
    EXPECT_EQ(server.record().await_messages(1).size(), 1U);
    const CrowdCaller younger(server.address(1));
    younger.await_end();  // after the patience, and after that of older strangers
    stream->send(0, head_of("after"), {});
    EXPECT_EQ(server.record().await_messages(2).size(), 2U);
  }
}

}  // namespace
}  // namespace syncopate::server::streams
