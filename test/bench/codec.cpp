// Rows of codecs: what a read is to encoding, what a packet loses, and a contender that selects what is largest.
#include <gtest/gtest.h>

#include "bench/codec/nth_element.hpp"
#include "bench/codec/rows.hpp"

namespace syncopate::tools::bench {
namespace {

TEST(CodecRows, CountEncodingInReadsOfTheSameRun) {
  CodecSeries series{.codec = "topk:0.5", .contender = "syncopate", .elements = 100};
  for (const double second : {3.0, 1.0, 2.0})
    series.add({.encode_s = 2 * second, .decode_s = second, .wire_bytes = 50, .index_bytes = 10}, second / 2);
  EXPECT_DOUBLE_EQ(series.reads(), 4);
  const nlohmann::json row = row_of(series);
  EXPECT_EQ(row.at("encode_seconds").at("median"), 4);
  EXPECT_EQ(row.at("encode_seconds").at("min"), 2);
  EXPECT_EQ(row.at("decode_seconds").at("max"), 3);
  EXPECT_EQ(row.at("read_seconds").at("n"), 3);
  EXPECT_EQ(row.at("wire_bytes"), 50);
  EXPECT_EQ(row.at("index_bytes"), 10);
}

TEST(CodecRows, ErrorIsWhatIsMissingOfTheInputsNorm) {
  const std::vector<float> input{3, 0, 4}, without{3, 0, 0}, zeros(3);
  EXPECT_DOUBLE_EQ(relative_error(without, input), 0.8);
  EXPECT_DOUBLE_EQ(relative_error(input, input), 0);
  EXPECT_DOUBLE_EQ(relative_error(zeros, zeros), 0);
}

TEST(NthElement, SendsTheLargestAndKeepsTheRest) {
  NthElement contender(4, 2, true);
  std::vector<float> first{1, -5, 3, 4}, second{1, 0, 0.5F, 0};
  const LoopbackStep step = contender.step(first);
  EXPECT_EQ(first, (std::vector<float>{0, -5, 0, 4}));
  EXPECT_EQ(step.wire_bytes, 16U);
  EXPECT_EQ(step.index_bytes, 8U);
  contender.step(second);
  EXPECT_EQ(second, (std::vector<float>{2, 0, 3.5F, 0})) << "what the first step left out comes with the second";
}

}  // namespace
}  // namespace syncopate::tools::bench
