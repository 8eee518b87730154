// Dialing: which servers are reached and when, and errors that name the others.
#include <gtest/gtest.h>

#include <future>

#include "service/ends.hpp"

namespace syncopate::server::streams {
namespace {

using namespace test;

TEST(Dialing, WaitsForAListenerThatStartsLater) {
  const std::string address = "@syncopate-late-" + std::to_string(::getpid());
  auto waiting = std::async(std::launch::async, [&] { return dial(address, end_named("worker 0"), {}); });
  EXPECT_EQ(waiting.wait_for(200ms), std::future_status::timeout);
  Server server({address});
  EXPECT_EQ(text_of(waiting.get()->peer()), "server 0");
}

TEST(Dialing, NobodyThereIsNamedInTime) {
  EndOptions hasty = end_named("worker 0");
  hasty.patience = 300ms;
  EXPECT_EQ(refusal_of("@syncopate-nobody", hasty), "PeerLost");
  EXPECT_EQ(refusal_of("127.0.0.1:1", hasty), "PeerLost");
}

TEST(Dialing, AnotherSecretOrJobIsRefusedByName) {
  Server server;
  EndOptions other = end_named("worker 0");
  other.secret = "another secret, long enough";
  EXPECT_EQ(refusal_of(server.address(), other), "Unauthorized");
  other.secret = "";
  EXPECT_EQ(refusal_of(server.address(), other), "Unauthorized");
  other = end_named("worker 0");
  other.job = "another job";
  EXPECT_EQ(refusal_of(server.address(), other), "Mismatch");
  EXPECT_EQ(server.accepted(), 0U);
}

TEST(Listening, AnAddressThatIsTakenIsRefusedByName) {
  Server server;
  try {
    const Streams other(end_named("server 1"), {server.address()});
    ADD_FAILURE() << "two listeners share an address";
  } catch (const SystemFailure& error) {
    EXPECT_EQ(error.what(), "cannot listen on " + server.address() + ": Address already in use");
  }
}

TEST(Listening, SeveralAddressesLeadToOneListener) {
  Server server({"127.0.0.1:0", "@syncopate-two-" + std::to_string(::getpid())});
  const auto one = dial(server.address(0), end_named("worker 0"), {});
  const auto other = dial(server.address(1), end_named("worker 1"), {});
  EXPECT_NE(server.stream(0).peer().index, server.stream(1).peer().index);
}

}  // namespace
}  // namespace syncopate::server::streams
