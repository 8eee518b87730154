// Rounds of quantising codecs: equal bits on all ranks, unbiased averages, and feedback that keeps all errors.
#include <map>

#include "compress/quantised/levels.hpp"
#include "compress/quantising.hpp"

namespace syncopate::compress {
namespace {

using namespace test;

/// Sizes: 0, 1, next to every boundary of groups and blocks, and fewer groups than parts.
std::vector<Shape> shapes() {
  std::vector<Shape> shapes;
  std::uint64_t key = 0;
  for (const std::size_t rows : {0, 1, 63, 64, 65, 511, 512, 513, 2560, 2561, 9000, 30001})
    shapes.push_back({rows, 1, 0x9e3779b97f4a7c15 * ++key});
  return shapes;
}

TEST(Quantised, EndsWithTheSameBitsOnEveryRank) {
  for (const std::string& codec : kQuantising)
    for (const int ranks : {1, 2, 3, 5, 8}) {
      Coders coders(settings_of(codec), shapes(), ranks);
      coders.fill([](auto rank, auto tensor, auto i) { return normal(rank * 100 + tensor, i); });
      coders.step();
      for (std::size_t rank = 1; rank < coders.size(); ++rank)
        for (std::size_t t = 0; t < shapes().size(); ++t)
          ASSERT_TRUE(std::ranges::equal(coders.at(0, t).values, coders.at(rank, t).values)) << codec << ", " << ranks;
    }
}

// Bounds from the codecs' variances, for normal elements: u / 2 with u = 3.5 sigma / s for QSGD; sqrt(2 sigma) for one
// TernGrad stage of four ranks; u / sqrt(12) for int8; sqrt(1 - 2 / pi) for signs. Doubled, because two stages round.
TEST(Quantised, AveragesTheRanks) {
  const std::map<std::string, double> most{{"qsgd:2", 2.1},   {"qsgd:4", 0.4}, {"qsgd:8", 0.025},
                                           {"terngrad", 0.8}, {"int8", 0.013}, {"onebit", 1}};
  for (const std::string& codec : kQuantising) {
    constexpr std::size_t kCount = 30000;
    Coders coders(settings_of(codec), {{kCount, 1, 5}}, 4);
    coders.fill([](auto rank, auto /*tensor*/, auto i) { return normal(9, i) + 0.5F * normal(rank, i); });
    double error = 0, norm = 0;
    Values mean(kCount);
    for (std::size_t i = 0; i < kCount; ++i)
      for (std::size_t rank = 0; rank < 4; ++rank) mean[i] += coders.at(rank).values[i] / 4;
    coders.step();
    for (std::size_t i = 0; i < kCount; ++i) {
      error += std::pow(coders.at(0).values[i] - mean[i], 2);
      norm += std::pow(mean[i], 2);
    }
    EXPECT_LT(std::sqrt(error / norm), most.at(codec)) << codec;
  }
}

TEST(Quantised, TakesExactlyTheBytesOfItsHeader) {
  const auto blocks = [](std::size_t n, std::size_t block) { return (n + block - 1) / block; };
  const auto bytes = [&](const std::string& codec, std::size_t n) {
    if (codec == "terngrad") return 64 * blocks(n, 320) + 4 * blocks(n, 2560);
    if (codec == "terngrad's averages") return 32 * blocks(n, 64) + 4 * blocks(n, 2560);
    if (codec == "onebit") return 8 * blocks(n, 64) + 8 * blocks(n, 512);
    const std::size_t bits = codec == "int8" ? 8 : static_cast<std::size_t>(codec.back() - '0');
    return 8 * bits * blocks(n, 64) + 4 * blocks(n, 512);
  };
  for (const std::string& codec : kQuantising)
    for (const int ranks : {1, 3, 7}) {
      Coders coders(settings_of(codec), shapes(), ranks);
      coders.begin();
      std::size_t expected = 0, averages = 0, parts = 0;
      for (const Shape& shape : shapes()) {
        expected += bytes(codec, shape.rows);
        averages += bytes(codec == "terngrad" ? "terngrad's averages" : codec, shape.rows);
      }
      const Round first = *coders[0].round;
      for (const std::size_t length : first.lengths) parts += length;
      EXPECT_EQ(first.payload.bytes().size(), expected) << codec;
      EXPECT_EQ(coders[0].wire_bytes, expected + averages) << codec;
      EXPECT_EQ(parts, expected) << codec;
      coders.answer_all();
      for (std::size_t rank = 0; rank < coders.size(); ++rank) {
        EXPECT_EQ(coders[rank].round->payload.bytes().size(), coders[0].round->lengths[rank]) << codec;
        averages -= coders[rank].round->payload.bytes().size();
      }
      EXPECT_EQ(averages, 0U) << codec;
    }
}

TEST(Quantised, DoesNotDependOnWhatTravelsTogether) {
  for (const std::string& codec : kQuantising) {
    Coders together(settings_of(codec), {{700, 1, 3}, {5000, 1, 4}}, 3), apart(settings_of(codec), {{5000, 1, 4}}, 3);
    together.fill([](auto rank, auto tensor, auto i) { return normal(rank + 10 * tensor, i); });
    apart.fill([](auto rank, auto /*tensor*/, auto i) { return normal(rank + 10, i); });
    together.step();
    apart.step();
    EXPECT_EQ(together.at(0, 1).values, apart.at(0).values) << codec;
  }
}

// The mean of an element over many draws approaches it: two stages each round by at most a unit; six deviations.
TEST(Stochastic, MeansApproachTheElements) {
  constexpr std::size_t kCount = 2700;
  constexpr int kSteps = 250;
  for (const std::string codec : {"qsgd:2", "qsgd:4", "terngrad"}) {
    Coders coders(settings_of(codec), {{kCount, 1, 5}}, 2);
    // Uniform in (-1, 1), so no element reaches 2.5 deviations. Some are zero.
    const auto element = [](std::size_t rank, std::size_t i) {
      const base::CounterRandom random{rank};
      return i % 17 == 0 ? 0.0F : static_cast<float>(2 * random.uniform(i) - 1);
    };
    std::vector<double> sums(kCount);
    double largest = 0;
    for (int step = 0; step < kSteps; ++step) {
      coders.fill([&](auto rank, auto /*tensor*/, auto i) { return element(rank, i); });
      coders.step();
      for (std::size_t i = 0; i < kCount; ++i) {
        sums[i] += coders.at(0).values[i];
        largest = std::max(largest, std::fabs(double{coders.at(0).values[i]}));
      }
    }
    double bias = 0;
    for (std::size_t i = 0; i < kCount; ++i) {
      const double mean = (double{element(0, i)} + element(1, i)) / 2, found = sums[i] / kSteps;
      ASSERT_LT(std::fabs(found - mean), 6 * largest / std::sqrt(kSteps)) << codec << ", " << i;
      bias += found - mean;
      if (i % 17 == 0) {
        ASSERT_EQ(found, 0) << codec;
      }
    }
    EXPECT_LT(std::fabs(bias), 6 * largest * std::sqrt(kCount / double{kSteps})) << codec;
  }
}

TEST(Stochastic, DrawsDifferByStepRankAndGradient) {
  const auto drawn = [](std::uint64_t key, int step, std::size_t rank) {
    Coders coders(settings_of("qsgd:2"), {{512, 1, key}}, 2);
    for (int i = 0; i < step; ++i) coders.step();
    coders.fill([](auto, auto, auto i) { return normal(1, i); });
    coders.begin();
    const auto payload = coders[rank].round->payload.bytes();
    return std::vector<std::byte>(payload.begin(), payload.end());
  };
  EXPECT_EQ(drawn(1, 0, 0), drawn(1, 0, 0));
  EXPECT_NE(drawn(1, 0, 0), drawn(2, 0, 0));
  EXPECT_NE(drawn(1, 0, 0), drawn(1, 1, 0));
  EXPECT_NE(drawn(1, 0, 0), drawn(1, 0, 1));
}

// sum of averages + mean residual + owners' residual = sum of mean gradients.
TEST(DoubleFeedback, AccountsForAllThatWasNotSent) {
  for (const std::string& codec : kSound)
    for (const int ranks : {1, 2, 3}) {
      constexpr std::size_t kCount = 3000;
      const Shape shape{kCount, 1, 7};
      Coders coders(with_residual(codec), {shape}, ranks);
      std::vector<double> balance(kCount);
      for (std::uint64_t step = 0; step < 20; ++step) {
        coders.fill([&](auto rank, auto, auto i) { return normal(100 * step + rank, i); });
        for (std::size_t i = 0; i < kCount; ++i)
          for (std::size_t rank = 0; rank < coders.size(); ++rank)
            balance[i] += coders.at(rank).values[i] / double(ranks);
        coders.step();
        for (std::size_t i = 0; i < kCount; ++i) balance[i] -= coders.at(0).values[i];
      }
      for (int rank = 0; rank < ranks; ++rank) {
        const Tensor& tensor = coders[static_cast<std::size_t>(rank)].tensors[0];
        const Values state = floats_of(coders.at(static_cast<std::size_t>(rank)).kept);
        const Range owned = quantised::part_of(tensor, quantised::kGroup, {.rank = rank, .ranks = ranks});
        for (std::size_t i = owned.begin; i < owned.end; ++i) balance[i] -= state[i - owned.begin];
        for (std::size_t i = 0; i < kCount; ++i) balance[i] -= state[state.size() - kCount + i] / ranks;
      }
      for (std::size_t i = 0; i < kCount; ++i) ASSERT_NEAR(balance[i], 0, 2e-5) << codec << ", " << ranks << ", " << i;
    }
}

TEST(DoubleFeedback, OfOneRankIsWhatItsPacketLeavesOutBitForBit) {
  for (const std::string& codec : kSound) {
    Coders plain(settings_of(codec), {{2000, 1, 7}}, 1), coders(with_residual(codec), {{2000, 1, 7}}, 1);
    for (Coders* each : {&plain, &coders}) each->fill([](auto, auto, auto i) { return normal(3, i); });
    const Values exact = coders.at(0).values;
    coders.step();
    // With one rank, the average is the decoded packet, which is already a level or a mean.
    plain.step();
    const Values state = floats_of(coders.at(0).kept);
    for (std::size_t i = 0; i < 2000; ++i) {
      const float decoded = coders.at(0).values[i] + state[i];  // the value that the owner encoded
      ASSERT_NEAR(state[2000 + i], exact[i] - decoded, 1e-6) << codec << ", " << i;
    }
  }
}

TEST(Parts, AreWholeGroupsAndCoverATensorOnce) {
  for (const std::size_t count : {0, 1, 512, 513, 5000, 100000})
    for (const int ranks : {1, 2, 5, 16})
      for (const std::uint64_t key : {0, 3, 12345}) {
        const Tensor tensor{.values = Buffer(nullptr, count, DType::f32), .key = key};
        std::vector<int> covered(count);
        for (int rank = 0; rank < ranks; ++rank) {
          const Range part = quantised::part_of(tensor, 512, {.rank = rank, .ranks = ranks});
          EXPECT_TRUE(part.size() == 0 || part.begin % 512 == 0);
          EXPECT_LE(part.size(), quantised::most_of(tensor, 512, ranks));
          for (std::size_t i = part.begin; i < part.end; ++i) ++covered[i];
        }
        EXPECT_TRUE(std::ranges::all_of(covered, [](int times) { return times == 1; }));
      }
}

}  // namespace
}  // namespace syncopate::compress
