// Addresses: text to value and back, refused texts, and the choice among this host's addresses.
#include "transport/socket/address.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate::transport::socket {
namespace {

TEST(Address, TextSurvivesParsing) {
  for (const char* text : {"127.0.0.1:29500", "10.1.2.3:0", "[::1]:29500", "[2001:db8::7]:65535"})
    EXPECT_EQ(Address::parse(text).text(), text);
}

TEST(Address, MalformedTextIsRefused) {
  for (const char* text :
       {"", "127.0.0.1", "127.0.0.1:", ":80", "::1:80", "[::1]", "127.0.0.1:65536", "127.0.0.1:8x", "1.2.3.400:5"})
    EXPECT_THROW(std::ignore = Address::parse(text), Misuse) << text;
  EXPECT_THROW(std::ignore = Address::parse("localhost:80"), Misuse) << "names need resolve";
}

TEST(Address, NamesResolve) { EXPECT_TRUE(Address::resolve("localhost:80").loopback()); }

TEST(Address, LoopbackIsRecognised) {
  EXPECT_TRUE(Address::parse("127.9.9.9:1").loopback());
  EXPECT_TRUE(Address::parse("[::1]:1").loopback());
  EXPECT_TRUE(Address::parse("[::ffff:127.0.0.1]:1").loopback());
  EXPECT_FALSE(Address::parse("10.0.0.1:1").loopback());
  EXPECT_FALSE(Address::parse("[2001:db8::1]:1").loopback());
}

TEST(Address, IsPublicWhereNoRangeKeepsItWithinASite) {
  for (const char* text : {"8.8.8.8:1", "172.15.0.1:1", "172.32.0.1:1", "192.167.1.1:1", "11.0.0.1:1", "100.64.0.1:1",
                           "[2001:db8::1]:1", "[::ffff:8.8.8.8]:1", "[fec0::1]:1"})
    EXPECT_TRUE(Address::parse(text).is_public()) << text;
  for (const char* text :
       {"127.0.0.1:1", "10.0.0.1:1", "172.16.0.1:1", "172.31.255.255:1", "192.168.7.7:1", "169.254.1.1:1", "[::1]:1",
        "[fd00::1]:1", "[fc00::1]:1", "[fe80::1]:1", "[::ffff:10.0.0.1]:1", "[::ffff:127.0.0.1]:1"})
    EXPECT_FALSE(Address::parse(text).is_public()) << text;
  EXPECT_FALSE(Address::named("a name").is_public());
}

TEST(Address, AnInterfaceIsFoundByNameAndByAddress) {
  EXPECT_EQ(interface_address("lo").text(), "127.0.0.1:0");
  EXPECT_EQ(interface_address("127.0.0.1").text(), "127.0.0.1:0");
  EXPECT_EQ(interface_address("::1").text(), "[::1]:0");
}

TEST(Address, AnUnknownInterfaceIsAnsweredWithThoseThatExist) {
  const std::string text = syncopate::test::thrown<Misuse>([] { return interface_address("nosuch0"); });
  EXPECT_NE(text.find("allowed: lo"), std::string::npos) << text;
  EXPECT_EQ(text.find(" lo,", text.find(" lo,") + 1), std::string::npos) << "listed once per address: " << text;
  EXPECT_THROW(std::ignore = interface_address("0.0.0.0"), Misuse);
}

TEST(Address, AnOpenAddressNeedsASecret) {
  EXPECT_NO_THROW(require_guarded(Address::parse("127.0.0.1:1"), false));
  EXPECT_NO_THROW(require_guarded(Address::parse("10.0.0.1:1"), true));
  syncopate::test::expect_thrown<Misuse>([] { require_guarded(Address::parse("10.0.0.1:1"), false); },
                                         {"SYNCOPATE_SECRET_FILE"});
}

TEST(Address, TheWayToLoopbackLeavesFromLoopback) {
  EXPECT_TRUE(source_toward(Address::parse("127.0.0.1:29500")).loopback());
}

TEST(Address, AHostIsItself) {
  EXPECT_EQ(host_identity(), host_identity());
  EXPECT_GT(host_identity().size(), 10u);
}

TEST(Address, AnotherNetworkNamespaceIsAnotherHost) {
  const std::string here = host_identity();
  std::string there = here;
  bool is_moved = false;
  std::jthread([&] {
    is_moved = ::unshare(CLONE_NEWNET) == 0;
    there = host_identity();
  }).join();
  if (!is_moved) GTEST_SKIP() << "only root can make a network namespace";
  EXPECT_NE(there, here);
}

}  // namespace
}  // namespace syncopate::transport::socket
