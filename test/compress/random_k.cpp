// Random-k sends the same elements on every rank, each once in so many steps, and brings exactly their average.
#include <gtest/gtest.h>

#include <cmath>

#include "compress/conversation.hpp"

namespace syncopate::compress {
namespace {

using test::Conversation;

float element(int rank, std::size_t i) { return static_cast<float>(i % 97 + 1) * static_cast<float>(rank + 1) / 7; }

void fill(Conversation& conversation) {
  for (int rank = 0; rank < conversation.ranks(); ++rank)
    for (std::size_t i = 0; i < conversation.at(rank).values.size(); ++i)
      conversation.at(rank).values[i] = element(rank, i);
}

TEST(RandomK, BringsTheAllReducesAverageOfWhatItSends) {
  Conversation conversation("random_k:0.1", 4, {1003});
  fill(conversation);
  conversation.step();
  ASSERT_EQ(conversation.rounds(), 1U);
  ASSERT_EQ(conversation.payloads(0)[0].size(), 101 * sizeof(float)) << "values, and nothing else";
  std::size_t sent = 0;
  for (std::size_t i = 0; i < 1003; ++i) {
    float sum = 0;
    for (int rank = 0; rank < 4; ++rank) sum += element(rank, i);
    const float combined = conversation.at(2).values[i];
    if (combined == 0) continue;
    ++sent;
    ASSERT_EQ(combined, sum / 4);
  }
  EXPECT_EQ(sent, 101U);
}

// Strata of ten elements.
TEST(RandomK, SendsEachElementOnceInAsManySteps) {
  Conversation conversation("random_k:0.1", 1, {1010});
  std::vector<int> times(1010);
  for (int step = 0; step < 30; ++step) {
    fill(conversation);
    conversation.step();
    for (std::size_t i = 0; i < 1010; ++i) times[i] += conversation.at(0).values[i] != 0 ? 1 : 0;
    if (step % 10 == 9) {
      for (std::size_t i = 0; i < 1010; ++i) ASSERT_EQ(times[i], (step + 1) / 10) << i;
    }
  }
}

TEST(RandomK, DrawsOtherElementsForOtherGradientsAndRounds) {
  Conversation conversation("random_k:0.01", 1, {100000, 100000});
  std::vector<std::vector<bool>> sent;
  for (int step = 0; step < 101; ++step) {
    for (const std::size_t tensor : {0, 1}) conversation.at(0, tensor).values.assign(100000, 1.0F);
    conversation.step();
    if (step != 0 && step != 100) continue;
    for (const std::size_t tensor : {0, 1}) {
      auto& which = sent.emplace_back();
      for (const float value : conversation.at(0, tensor).values) which.push_back(value != 0);
    }
  }
  for (std::size_t a = 0; a < 4; ++a)
    for (std::size_t b = 0; b < a; ++b) {
      std::size_t both = 0;
      for (std::size_t i = 0; i < 100000; ++i) both += sent[a][i] && sent[b][i] ? 1 : 0;
      EXPECT_LT(both, 40U) << "by chance 10 of 1000 in common: " << a << ", " << b;
    }
}

}  // namespace
}  // namespace syncopate::compress
