// Dialing: which listeners are reached and when, and errors that name the others; refused addresses and certificates.
#include <gtest/gtest.h>

#include <future>

#include "service/ends.hpp"

namespace syncopate::server::rpc {
namespace {

using namespace test;

TEST(Dialing, WaitsForAListenerThatStartsLater) {
  const std::string address = "@syncopate-late-" + std::to_string(::getpid());
  auto waiting = std::async(std::launch::async, [&] { return dial(address, end_named("worker 0"), {}); });
  EXPECT_EQ(waiting.wait_for(200ms), std::future_status::timeout);
  Server server({address});
  EXPECT_EQ(waiting.get()->peer(), "server 0");
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
    std::ignore = listen({server.address()}, end_named("server 1"), {});
    ADD_FAILURE() << "two listeners share an address";
  } catch (const SystemFailure& error) {
    EXPECT_EQ(error.what(), "cannot listen at " + server.address() + ": Address already in use");
  }
}

TEST(Listening, SeveralAddressesLeadToOneListener) {
  Server server({"127.0.0.1:0", "@syncopate-two-" + std::to_string(::getpid())});
  const auto one = dial(server.address(0), end_named("worker 0"), {});
  const auto other = dial(server.address(1), end_named("worker 1"), {});
  EXPECT_NE(server.stream(0).peer(), server.stream(1).peer());
}

}  // namespace
}  // namespace syncopate::server::rpc
