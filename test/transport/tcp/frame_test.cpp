// Frames: encoded frames are decoded, and nothing else is accepted.
#include <gtest/gtest.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "syncopate/error.hpp"
#include "thrown.hpp"
#include "transport/tcp/stream.hpp"

namespace syncopate::transport::tcp {
namespace {

Frame example() {
  return {.group = 0x11223344,
          .epoch = 3,
          .label = {42, 0xfeedface},
          .payload_bytes = 4096,
          .checked = true,
          .checksum = 99};
}

void reseal(FrameBytes& bytes) { base::put(bytes, 36, static_cast<std::uint32_t>(XXH3_64bits(bytes.data(), 36))); }

TEST(Frame, WhatIsEncodedIsDecoded) {
  EXPECT_EQ(decode(encode(example())), example());
  EXPECT_EQ(decode(encode(Frame{})), Frame{});
}

TEST(Frame, ADamagedHeaderIsRefused) {
  for (std::size_t bit = 0; bit < kFrameHeaderBytes * 8; ++bit) {
    FrameBytes bytes = encode(example());
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_THROW(std::ignore = decode(bytes), Corrupt) << "bit " << bit;
  }
}

TEST(Frame, AnotherVersionIsNamed) {
  FrameBytes bytes = encode(example());
  base::put(bytes, 2, std::uint8_t{7});
  reseal(bytes);
  syncopate::test::expect_thrown<Corrupt>([&] { return decode(bytes); }, {"version 7 instead of 2"});
}

TEST(Frame, UnknownFlagsAreRefused) {
  FrameBytes bytes = encode(example());
  base::put(bytes, 3, std::uint8_t{2});
  reseal(bytes);
  EXPECT_THROW(std::ignore = decode(bytes), Corrupt);
}

TEST(Frame, ALengthBeyondTheLimitIsRefused) {
  Frame frame = example();
  frame.payload_bytes = kMaxPayloadBytes;
  EXPECT_EQ(decode(encode(frame)).payload_bytes, kMaxPayloadBytes);
  frame.payload_bytes = kMaxPayloadBytes + 1;
  EXPECT_THROW(std::ignore = decode(encode(frame)), Corrupt);
}

}  // namespace
}  // namespace syncopate::transport::tcp
