// Laws of exchanges by hand, and rows that compare seconds with them.
#include <gtest/gtest.h>

#include "bench/exchange/law.hpp"
#include "bench/exchange/rows.hpp"

namespace syncopate::tools::bench {
namespace {

const ExchangeSubject kRing{"allreduce", "none", "ring"}, kTorus{"allreduce", "none", "torus_2d"};
const ExchangeSubject kFlat{"allreduce", "topk:0.01", "ring", 0.01}, kHier{"hierarchical", "topk:0.01", "ring", 0.01};
constexpr ExchangePlace kPlace{.hosts = 4, .ranks_per_host = 2, .elements = 1'000'000};

TEST(ExchangeLaw, CountsTheBytesOfAPort) {
  EXPECT_DOUBLE_EQ(port_bytes(kRing, kPlace, IndexLaw::pairs), 2 * 7.0 / 8 * 4e6);
  EXPECT_DOUBLE_EQ(port_bytes(kTorus, kPlace, IndexLaw::pairs), 2 * 3.0 / 4 * 4e6);
  EXPECT_DOUBLE_EQ(port_bytes(kFlat, kPlace, IndexLaw::pairs), 7 * 10'000 * 8.0);
  EXPECT_DOUBLE_EQ(port_bytes(kHier, kPlace, IndexLaw::pairs), 3 * 10'000 * 8.0) << "both ranks send half of it";
}

TEST(ExchangeLaw, CountsTheBytesOfAnotherAlgorithmInItsPlans) {
  const ExchangeSubject tree{"allreduce", "none", "double_binary_tree"}, mst{"allreduce", "none", "mst"};
  constexpr ExchangePlace two{.hosts = 2, .ranks_per_host = 1, .elements = 1'000'000};
  EXPECT_DOUBLE_EQ(port_bytes(tree, two, IndexLaw::coded), 4e6) << "half of it up, half of it down";
  EXPECT_DOUBLE_EQ(port_bytes(mst, {4, 2, 1'000'000}, IndexLaw::coded), 2 * 4e6) << "the root sends to two hosts";
  EXPECT_GE(port_bytes(tree, kPlace, IndexLaw::coded), port_bytes(kTorus, kPlace, IndexLaw::coded));
}

TEST(ExchangeLaw, CodedIndicesAreThoseThatOursTake) {
  EXPECT_NEAR(index_bits(0.001, IndexLaw::coded), 11.50, 0.01) << "measured by bench codec";
  EXPECT_NEAR(index_bits(0.01, IndexLaw::coded), 8.11, 0.01);
  EXPECT_DOUBLE_EQ(index_bits(0.5, IndexLaw::coded), 2) << "a bitmap";
  EXPECT_DOUBLE_EQ(index_bits(1, IndexLaw::coded), 1);
  EXPECT_DOUBLE_EQ(index_bits(0.01, IndexLaw::pairs), 32);
}

TEST(ExchangeLaw, BreaksEvenAtOneOverTheParticipantsWithPairsAndLaterWithCodedIndices) {
  for (const int parts : {2, 4, 16, 128}) EXPECT_NEAR(break_even(parts, IndexLaw::pairs), 1.0 / parts, 1e-9) << parts;
  EXPECT_NEAR(break_even(2, IndexLaw::coded), 31.0 / 32, 1e-9) << "4 p + 1/8 = 4";
  EXPECT_GT(break_even(16, IndexLaw::coded), 1.0 / 16);
  EXPECT_LT(break_even(16, IndexLaw::coded), 2.0 / 16);
}

TEST(ExchangeLaw, ACodedPacketIsNeverMoreThanTheDenseExchange) {
  const ExchangeSubject all{"hierarchical", "topk:1", "ring", 1};
  EXPECT_DOUBLE_EQ(port_bytes(all, kPlace, IndexLaw::coded), port_bytes(kTorus, kPlace, IndexLaw::coded));
  EXPECT_GT(port_bytes(all, kPlace, IndexLaw::pairs), port_bytes(kTorus, kPlace, IndexLaw::pairs));
}

std::string raw(const ExchangeSubject& subject, double seconds, bool correct = true) {
  return nlohmann::json{{"exchange", subject.exchange},   {"codec", subject.codec},
                        {"algorithm", subject.algorithm}, {"block_seconds", {seconds}},
                        {"port_bytes", 1000 * seconds},   {"correct", correct}}
      .dump();
}

TEST(ExchangeRows, ModelIsTheWireBehindTheWorkInHostsForCodecsAndBesideItForDenseGradients) {
  ExchangeRows rows({kTorus, kHier}, kPlace, 8e6);  // a megabyte a second
  EXPECT_FALSE(rows.take("hello", true));
  for (const ExchangeSubject& subject : {kTorus, kHier}) {
    EXPECT_TRUE(rows.take(raw(subject, 1), false));
    EXPECT_TRUE(rows.take(raw(subject, 8), true));
  }
  const auto json = rows.json();
  const double torus = 6 * 1.047, hier = port_bytes(kHier, kPlace, IndexLaw::coded) / 1e6 * 1.047;
  EXPECT_DOUBLE_EQ(json[0].at("model_seconds"), torus);
  EXPECT_DOUBLE_EQ(json[1].at("model_seconds"), 1 + hier);
  EXPECT_DOUBLE_EQ(json[1].at("ratio"), 8 / (1 + hier));
  EXPECT_DOUBLE_EQ(json[1].at("local_seconds"), 1);
  EXPECT_DOUBLE_EQ(json[1].at("wire_bytes"), 8000);
  EXPECT_TRUE(rows.all_correct());
  EXPECT_NE(rows.table().find("0.25 with 32-bit ones"), std::string::npos) << rows.table();
}

TEST(ExchangeRows, OneWrongAnswerMakesARowWrong) {
  ExchangeRows rows({kTorus}, kPlace, 8e6);
  EXPECT_FALSE(rows.all_correct()) << "nothing was measured";
  rows.take(raw(kTorus, 1, false), false);
  rows.take(raw(kTorus, 1), true);
  EXPECT_FALSE(rows.all_correct());
}

}  // namespace
}  // namespace syncopate::tools::bench
