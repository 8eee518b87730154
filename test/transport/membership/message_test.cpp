// Control messages: they survive the wire, stay bounded, and malformed bytes are Corrupt.
#include "transport/membership/message.hpp"

#include <gtest/gtest.h>

#include <random>

#include "syncopate/version.hpp"
#include "thrown.hpp"
#include "transport/connect/peer_info.hpp"
#include "transport/connect/rendezvous/tcp_message.hpp"

namespace syncopate::transport::membership {
namespace {

std::vector<Message> examples() {
  return {Heartbeat{{2, 17, "allreduce f32 x 4 sum"}, 0xabc, {5, 3, "barrier"}},
          Failure{ErrorKind::mismatch, "they differ", {1, 2, "allreduce", "fc1.weight"}},
          Goodbye{3, 99, {{1, 250}, {7, 0}}}, Question{0, 4, 12}, Reply{4, 0, 12, "broadcast", {4, 13, "reduce"}}};
}

TEST(Message, EveryKindSurvivesTheWire) {
  for (const Message& message : examples()) {
    const Message again = decode_message(encode(message));
    EXPECT_EQ(again.index(), message.index());
    EXPECT_EQ(encode(again), encode(message));
  }
  const auto failure = std::get<Failure>(decode_message(encode(examples()[1])));
  EXPECT_EQ(failure.where.tensor, "fc1.weight");
  EXPECT_EQ(failure.where.peer, 2);
}

TEST(Message, NoTextMakesItTooLong) {
  const std::string huge(100'000, 'x');
  EXPECT_LE(encode(Failure{{}, huge, {0, 0, huge, huge}}).size(), kMaxMessage);
  EXPECT_LE(encode(Heartbeat{{0, 1, huge}, 0, {0, 1, huge}}).size(), kMaxMessage);
  EXPECT_LE(encode(Reply{0, 0, 0, huge, {0, 0, huge}}).size(), kMaxMessage);
}

TEST(Message, EveryTruncationAndEveryAdditionIsCorrupt) {
  for (const Message& message : examples()) {
    const std::string whole = encode(message);
    for (std::size_t size = 0; size < whole.size(); ++size)
      EXPECT_THROW(std::ignore = decode_message(whole.substr(0, size)), Corrupt);
    EXPECT_THROW(std::ignore = decode_message(whole + "x"), Corrupt);
  }
}

TEST(Message, AFailureOfAnUnknownKindIsCorrupt) {
  std::string bytes = encode(Failure{ErrorKind::system_failure, "the disk is full", {}});
  EXPECT_EQ(std::get<Failure>(decode_message(bytes)).kind, ErrorKind::system_failure);
  bytes[1] = static_cast<char>(static_cast<int>(ErrorKind::system_failure) + 1);
  EXPECT_THROW(std::ignore = decode_message(bytes), Corrupt);
  bytes[1] = static_cast<char>(0xff);
  EXPECT_THROW(std::ignore = decode_message(bytes), Corrupt);
}

TEST(Message, DamageIsDecodedOrCorruptButNothingElse) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = encode(examples()[random() % 5]);
    for (int flips = 1 + static_cast<int>(random() % 4); flips > 0; --flips)
      bytes[random() % bytes.size()] ^= static_cast<char>(1 << (random() % 8));
    try {
      std::ignore = decode_message(bytes);
    } catch (const Corrupt&) {
    }
    try {
      std::ignore = connect::rendezvous::decode_answer(bytes);
    } catch (const Corrupt&) {
    }
    try {
      std::ignore = connect::rendezvous::decode_request(bytes);
    } catch (const Corrupt&) {
    }
  }
}

TEST(PeerInfo, SurvivesTheWireAndNamesAnotherVersion) {
  connect::PeerInfo mine{.version = "0.1.0",
                         .address = "127.0.0.1:5",
                         .host = "h",
                         .group = 7,
                         .streams = 3,
                         .checksum = true,
                         .silence_ms = 9};
  mine.version = "7.7.7";
  syncopate::test::expect_thrown<Misuse>([&] { return connect::decode_peer_info(encode(mine), 4); },
                                         {"rank 4 runs Syncopate 7.7.7"});
}

TEST(PeerInfo, OfAnUnknownChoiceIsCorrupt) {
  std::string bytes = encode(connect::PeerInfo{.version = std::string(version()), .tls = TlsChoice::off});
  EXPECT_EQ(connect::decode_peer_info(bytes, 4).tls, TlsChoice::off);
  bytes.back() = static_cast<char>(static_cast<int>(TlsChoice::off) + 1);  // tls is its last field
  EXPECT_THROW(std::ignore = connect::decode_peer_info(bytes, 4), Corrupt);
}

TEST(PeerInfo, OfAnotherHostsLoopbackIsRefusedWithWhatToDo) {
  const connect::PeerInfo mine{.version = "", .address = "127.0.0.1:5", .host = "a"};
  const connect::PeerInfo neighbour{.version = "", .address = "127.0.0.1:6", .host = "a"};
  const connect::PeerInfo far{.version = "", .address = "10.0.0.2:6", .host = "b"};
  const connect::PeerInfo lost{.version = "", .address = "127.0.0.1:6", .host = "b"};
  EXPECT_NO_THROW(connect::require_reachable(mine, neighbour, 1));
  EXPECT_NO_THROW(connect::require_reachable(mine, far, 1));
  syncopate::test::expect_thrown<Misuse>(
      [&] { connect::require_reachable(mine, lost, 3); },
      {"rank 3 runs on another host, but listens on 127.0.0.1:6", "SYNCOPATE_INTERFACE"});
}

}  // namespace
}  // namespace syncopate::transport::membership
