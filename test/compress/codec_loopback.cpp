// Codec loopback: what is sent, what is decoded, and the state of the next step.
#include "syncopate/tooling/codec_loopback.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "compress/codec.hpp"
#include "syncopate/error.hpp"

namespace syncopate::compress {
namespace {

std::vector<float> falling(std::size_t elements) {
  std::vector<float> values;
  for (std::size_t i = 0; i < elements; ++i) values.push_back(static_cast<float>(elements - i));
  return values;
}

std::ptrdiff_t not_zero(const std::vector<float>& values) {
  return std::ranges::count_if(values, [](float x) { return x != 0; });
}

TEST(CodecLoopback, HoldsAConversationWithEveryCodec) {
  for (const Codec* codec : codecs()) {
    CodecLoopback loopback({.codec = std::string(codec->name), .elements = 64 * 96});
    for (int repeat = 0; repeat < 3; ++repeat) {
      std::vector<float> gradient = falling(64 * 96);
      const LoopbackStep step = loopback.step(gradient);
      EXPECT_GT(step.wire_bytes, 0U) << codec->name;
      EXPECT_LE(step.index_bytes, step.wire_bytes) << codec->name;
      EXPECT_GE(step.encode_s, 0) << codec->name;
      EXPECT_GE(step.decode_s, 0) << codec->name;
      EXPECT_GT(not_zero(gradient), 0) << codec->name;
    }
  }
}

TEST(CodecLoopback, CountsEveryByteOfThePayload) {
  std::vector<float> gradient = falling(1000);
  CodecLoopback none({.codec = "none", .elements = 1000});
  EXPECT_EQ(none.step(gradient).wire_bytes, 4000U);
  EXPECT_EQ(gradient, falling(1000));
  EXPECT_FALSE(none.selects());
  EXPECT_EQ(none.density(), std::nullopt);

  CodecLoopback topk({.codec = "topk:0.05", .elements = 1000});
  const LoopbackStep step = topk.step(gradient);
  EXPECT_EQ(not_zero(gradient), 50);
  EXPECT_EQ(step.wire_bytes - step.index_bytes, 50U * 4U) << "all other bytes encode indices";
  EXPECT_GT(step.index_bytes, 0U);
  EXPECT_TRUE(topk.selects());
  EXPECT_EQ(topk.density(), 0.05);
}

TEST(CodecLoopback, CountsMasksAsIndices) {
  std::vector<float> gradient = falling(1000);
  CodecLoopback loopback({.codec = "importance", .elements = 1000});
  const LoopbackStep step = loopback.step(gradient);
  EXPECT_GT(step.index_bytes, 0U);
  EXPECT_EQ((step.wire_bytes - step.index_bytes) % sizeof(float), 0U) << "the second round has values only";
}

TEST(CodecLoopback, WhatAStepLeavesOutJoinsTheNextWithFeedbackOnly) {
  for (const bool keeps : {false, true}) {
    CodecLoopback loopback(
        {.codec = "topk:0.5", .feedback = keeps ? FeedbackKind::residual : FeedbackKind::none, .elements = 2});
    std::vector<float> first{4, 3}, second{4, 3};
    loopback.step(first);
    loopback.step(second);
    EXPECT_EQ(first, (std::vector<float>{4, 0}));
    EXPECT_EQ(second, keeps ? (std::vector<float>{0, 6}) : (std::vector<float>{4, 0}));
  }
}

TEST(CodecLoopback, RefusesWhatNoCodecTakes) {
  EXPECT_THROW(CodecLoopback({.codec = "nonsense", .elements = 10}), Misuse);
  EXPECT_THROW(CodecLoopback({.codec = "topk:2", .elements = 10}), Misuse);
  EXPECT_THROW(CodecLoopback({.codec = "topk", .elements = 0}), Misuse);
  EXPECT_THROW(CodecLoopback({.codec = "topk", .feedback = FeedbackKind::momentum, .elements = 10}), Misuse);
  EXPECT_THROW(CodecLoopback({.codec = "fp16", .feedback = FeedbackKind::residual, .elements = 10}), Misuse);
  CodecLoopback loopback({.codec = "topk", .elements = 10});
  std::vector<float> other(11);
  EXPECT_THROW(loopback.step(other), Misuse);
}

TEST(ReadOnce, ReadsEveryElement) {
  std::vector<float> values(1001, 0.0F);
  const std::uint32_t before = read_once(values);
  values.back() = 1;
  EXPECT_NE(read_once(values), before);
}

}  // namespace
}  // namespace syncopate::compress
