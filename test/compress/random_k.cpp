// Random-k: all ranks send the same elements, each once in 1/density steps, and receive their exact average.
#include <gtest/gtest.h>

#include <cmath>

#include "compress/coders.hpp"

namespace syncopate::compress {
namespace {

using test::Coders;
using test::vectors_of;
using test::with_residual;

float element(std::size_t rank, std::size_t i) {
  return static_cast<float>(i % 97 + 1) * static_cast<float>(rank + 1) / 7;
}

void fill(Coders& coders) {
  for (std::size_t rank = 0; rank < coders.size(); ++rank)
    for (std::size_t i = 0; i < coders.at(rank).values.size(); ++i) coders.at(rank).values[i] = element(rank, i);
}

TEST(RandomK, BringsTheAllReducesAverageOfWhatItSends) {
  Coders coders(with_residual("random_k:0.1"), vectors_of({1003}), 4);
  fill(coders);
  coders.step();
  ASSERT_EQ(coders.rounds(), 1U);
  ASSERT_EQ(coders.payloads(0)[0].size(), 101 * sizeof(float)) << "values, and nothing else";
  std::size_t sent = 0;
  for (std::size_t i = 0; i < 1003; ++i) {
    float sum = 0;
    for (std::size_t rank = 0; rank < 4; ++rank) sum += element(rank, i);
    const float combined = coders.at(2).values[i];
    if (combined == 0) continue;
    ++sent;
    ASSERT_EQ(combined, sum / 4);
  }
  EXPECT_EQ(sent, 101U);
}

// Strata of ten elements.
TEST(RandomK, SendsEachElementOnceInAsManySteps) {
  Coders coders(with_residual("random_k:0.1"), vectors_of({1010}), 1);
  std::vector<int> times(1010);
  for (int step = 0; step < 30; ++step) {
    fill(coders);
    coders.step();
    for (std::size_t i = 0; i < 1010; ++i) times[i] += coders.at(0).values[i] != 0 ? 1 : 0;
    if (step % 10 == 9) {
      for (std::size_t i = 0; i < 1010; ++i) ASSERT_EQ(times[i], (step + 1) / 10) << i;
    }
  }
}

TEST(RandomK, DrawsOtherElementsForOtherGradientsAndRounds) {
  Coders coders(with_residual("random_k:0.01"), vectors_of({100000, 100000}), 1);
  std::vector<std::vector<bool>> sent;
  for (int step = 0; step < 101; ++step) {
    for (const std::size_t tensor : {0, 1}) coders.at(0, tensor).values.assign(100000, 1.0F);
    coders.step();
    if (step != 0 && step != 100) continue;
    for (const std::size_t tensor : {0, 1}) {
      auto& which = sent.emplace_back();
      for (const float value : coders.at(0, tensor).values) which.push_back(value != 0);
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
