// Proofs: a nonce is valid for its caller, once, and for its time; heartbeats keep an idle stream alive.
#include <gtest/gtest.h>

#include "server/rpc/proof.hpp"
#include "service/ends.hpp"

namespace syncopate::server::rpc {
namespace {

using namespace test;
using Verdict = Challenger::Verdict;

const std::string kJobSecret = "a secret of sufficient length";

HelloBytes hello_of(const std::string& identity) {
  return say_hello({.version = {}, .silence = 2s, .identity = identity, .job = "a job"});
}

Challenger challenger() {
  return {{.version = {}, .silence = 3s, .identity = "server 0", .job = "a job"}, kJobSecret, 10s};
}

TEST(Challenger, TakesANonceOnceAndForItsTime) {
  Challenger server = challenger();
  const HelloBytes caller = hello_of("worker 0");
  const base::Time start{std::chrono::hours(5)};
  const HelloBytes nonce = server.challenge(caller, start);
  const auto proof = prove(kJobSecret, Role::caller, caller, nonce);
  EXPECT_EQ(server.check(caller, nonce, proof, start + 10s), Verdict::right) << "at the end of its time";
  EXPECT_EQ(server.check(caller, nonce, proof, start + 10s), Verdict::stale) << "again";
  EXPECT_EQ(server.check(caller, nonce, proof, start + 11s), Verdict::stale) << "again, after it was forgotten";
  const HelloBytes second = server.challenge(caller, start);
  EXPECT_EQ(server.check(caller, second, prove(kJobSecret, Role::caller, caller, second), start + 10s + 1ns),
            Verdict::stale);
}

TEST(Challenger, TakesANonceOfItsOwnForItsCallerAlone) {
  Challenger server = challenger(), other = challenger();
  const base::Time now{std::chrono::hours(5)};
  const HelloBytes caller = hello_of("worker 0"), thief = hello_of("worker 0");
  const HelloBytes nonce = server.challenge(caller, now);
  EXPECT_EQ(server.check(thief, nonce, prove(kJobSecret, Role::caller, thief, nonce), now), Verdict::stale);
  EXPECT_EQ(other.check(caller, nonce, prove(kJobSecret, Role::caller, caller, nonce), now), Verdict::stale);
  for (std::size_t at = 0; at < kHelloBytes; ++at) {
    HelloBytes changed = nonce;
    changed[at] ^= std::byte{1};
    EXPECT_EQ(server.check(caller, changed, prove(kJobSecret, Role::caller, caller, changed), now), Verdict::stale)
        << at;
  }
  EXPECT_EQ(server.check(caller, nonce, prove("another", Role::caller, caller, nonce), now), Verdict::wrong);
  EXPECT_EQ(server.check(caller, nonce, prove(kJobSecret, Role::caller, caller, nonce), now), Verdict::right)
      << "wrong attempts do not use it up";
}

TEST(Hello, IsReadAsItWasSaidAndShowsNoBytes) {
  const auto hello = read_hello(hello_of("worker 0"));
  ASSERT_TRUE(hello.has_value());
  EXPECT_EQ(hello->identity + "," + hello->job, "worker 0,a job");
  EXPECT_EQ(hello->silence, 2s);
  HelloBytes bytes = hello_of("worker\n0");
  EXPECT_EQ(read_hello(bytes)->identity, "worker?0");
  EXPECT_FALSE(read_hello(base::ConstBytes(bytes).first(kHelloBytes - 1)).has_value());
  bytes[0] ^= std::byte{1};
  EXPECT_FALSE(read_hello(bytes).has_value());
}

/// Both ends live, and neither sends a message for three times the silence.
TEST(Heartbeats, KeepAStreamWithoutMessages) {
  EndOptions options = end_named("server 0");
  options.silence = 1s;
  Server server({"127.0.0.1:0"}, options);
  Record record;
  const auto stream = dial(server.address(), end_named("worker 0"), record.events());
  base::Guarded<bool> never{false};
  never.wait_until(
      std::chrono::steady_clock::now() + 3s, [](bool value) { return value; }, [](bool) {});
  EXPECT_EQ(record.endings() + server.record().endings(), 0U);
  stream->send(0, head_of("still here"), {});
  EXPECT_EQ(server.record().await_messages(1).at(0), "still here");
}

}  // namespace
}  // namespace syncopate::server::rpc
