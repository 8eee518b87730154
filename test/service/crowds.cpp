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

namespace syncopate::server::rpc {
namespace {

using namespace test;
using syncopate::test::Child;

constexpr char kCrowdAddress[] = "SYNCOPATE_TEST_CROWD_ADDRESS";

/// A connection of a caller without the secret.
class Caller final {
 public:
  explicit Caller(const std::string& address) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const std::size_t colon = address.rfind(':');
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
    ::inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr);
    is_connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  ~Caller() { ::close(socket_); }
  Caller(Caller&& other) noexcept : socket_(std::exchange(other.socket_, -1)), is_connected_(other.is_connected_) {}
  Caller& operator=(Caller&&) = delete;

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
  for (const std::string_view first : {"", "P"}) {  // silent, or begins as gRPC does and then stays silent
    std::vector<Caller> crowd;
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

/// The log of a listener with room for 12 connections of strangers.
struct Crowded {
  Crowded() {
    EndOptions options = end_named("server 0");
    options.log = {LogLevel::warning, [this](LogLevel, std::string_view line) {
                     said.with([&](std::vector<std::string>& lines) { lines.emplace_back(line); });
                   }};
    const DescriptorLimit limit(100);
    server = std::make_unique<Server>(std::vector<std::string>{"127.0.0.1:0"}, options);
  }
  base::Guarded<std::vector<std::string>> said;
  std::unique_ptr<Server> server;
};

TEST(Crowds, LoseTheirOldestConnectionsAndTheLogSaysSoOnce) {
  for (const std::string_view first : {"", "P"}) {
    Crowded crowded;
    std::vector<Caller> crowd;
    for (int i = 0; i < 40; ++i) {
      crowd.emplace_back(crowded.server->address());
      if (!first.empty()) crowd.back().say(first);
    }
    crowd.front().await_end();
    crowded.said.with([](const std::vector<std::string>& lines) {
      ASSERT_EQ(lines.size(), 1U);
      EXPECT_NE(lines[0].find("server 0: 12 connections"), std::string::npos) << lines[0];
    });
  }
}

/// A connection that has proved the secret is no longer a guest: closing guests does not end it.
TEST(Crowds, DoNotEndTheStreamsOfMembers) {
  for (const char* address : {"127.0.0.1:0", "[::1]:0"}) {
    EndOptions options = end_named("server 0");
    options.patience = 500ms;
    Server server({address, "127.0.0.1:0"}, options);
    const auto stream = dial(server.address(), end_named("worker 0"), {});
    stream->send(0, head_of("before"), {});
    EXPECT_EQ(server.record().await_messages(1).size(), 1U);
    const Caller younger(server.address(1));
    younger.await_end();  // after the patience, and after that of older guests
    stream->send(0, head_of("after"), {});
    EXPECT_EQ(server.record().await_messages(2).size(), 2U);
  }
}

}  // namespace
}  // namespace syncopate::server::rpc
