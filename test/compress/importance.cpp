// Importance-weighted pruning sends the union of the drawn ranks' masks, applies its thresholds, and validates masks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "base/random.hpp"
#include "compress/coders.hpp"
#include "compress/sparse/packet.hpp"
#include "syncopate/error.hpp"

namespace syncopate::compress {
namespace {

using test::Coders;
using test::vectors_of;
using test::with_residual;

struct Thresholds {
  double alpha, beta = 0, turn = 0;  ///< `turn` is C
};

/// `importance:ALPHA,MASKS,FLUSH,CHANCE,BETA,C,EPS`.
std::string codec(const Thresholds& thresholds, int masks, int flush = 0, double chance = 0) {
  return fmt::format("importance:{},{},{},{},{},{},0.01", thresholds.alpha, masks, flush, chance, thresholds.beta,
                     thresholds.turn);
}

/// Fills every rank's gradients and weights; some weights are zero.
void fill(Coders& coders, std::size_t tensors, std::uint64_t step) {
  for (std::size_t rank = 0; rank < coders.size(); ++rank)
    for (std::size_t tensor = 0; tensor < tensors; ++tensor) {
      const base::CounterRandom gradients{step, rank, tensor}, weights{tensor};
      auto& [values, weight, kept, next] = coders.at(rank, tensor);
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(gradients.uniform(i) - 0.5);
        weight[i] = 0.25F * static_cast<float>(weights.below(5, i));
      }
    }
}

/// A rank's v = fl(g + r) before the step.
std::vector<float> formed(Coders& coders, std::size_t rank, std::size_t tensor, std::uint64_t step) {
  std::vector<float> v = coders.at(rank, tensor).values;
  for (std::size_t i = 0; step > 0 && i < v.size(); ++i) v[i] += coders.residual(rank, tensor, i);
  return v;
}

/// Elements above their threshold, by the corrected equation 4.
std::set<std::size_t> important(const std::vector<float>& v, const std::vector<float>& w, const Thresholds& of) {
  std::vector<double> importance;
  for (std::size_t i = 0; i < v.size(); ++i) importance.push_back(std::fabs(v[i]) / (std::fabs(w[i]) + 0.01));
  double mean = 0, variance = 0;
  for (const double x : importance) mean += x / static_cast<double>(v.size());
  for (const double x : importance) variance += (x - mean) * (x - mean) / static_cast<double>(v.size());
  const double ratio = mean == 0 ? 0 : variance / mean;
  const double threshold =
      std::max(ratio > of.turn ? of.alpha + of.beta * ratio : of.alpha - of.beta * ratio, of.alpha / 10);
  std::set<std::size_t> found;
  for (std::size_t i = 0; i < v.size(); ++i)
    if (importance[i] > threshold) found.insert(i);
  return found;
}

/// Ranks that proposed at least one element.
std::vector<std::size_t> proposers(const Coders& coders) {
  std::vector<std::size_t> found;
  for (std::size_t rank = 0; rank < coders.payloads(0).size(); ++rank)
    if (!coders.payloads(0)[rank].empty()) found.push_back(rank);
  return found;
}

TEST(Importance, SendsOnAllRanksWhatTheDrawnRanksFindImportant) {
  for (const Thresholds& thresholds : {Thresholds{1, 0, 0}, {1, 0.1, 0.2}, {1, 0.1, 1e6}, {1, 1e6, 1e6}, {0.3, 1e6, 0}})
    for (const int masks : {1, 2, 5}) {
      constexpr int kRanks = 4;
      Coders coders(with_residual(codec(thresholds, masks)), vectors_of({700}), kRanks);
      for (std::uint64_t step = 0; step < 6; ++step) {
        fill(coders, 1, step);
        std::vector<std::vector<float>> v;
        for (std::size_t rank = 0; rank < kRanks; ++rank) v.push_back(formed(coders, rank, 0, step));
        coders.step();
        const auto drawn = proposers(coders);
        std::set<std::size_t> travels;
        for (const std::size_t rank : drawn) travels.merge(important(v[rank], coders.at(rank).weights, thresholds));
        ASSERT_LE(drawn.size(), static_cast<std::size_t>(masks));
        for (std::size_t i = 0; i < 700; ++i) {
          float sum = 0;
          for (const auto& mine : v) sum += mine[i];
          ASSERT_EQ(coders.at(1).values[i], travels.contains(i) ? sum / kRanks : 0) << i;
          for (std::size_t rank = 0; rank < kRanks; ++rank)
            ASSERT_EQ(coders.residual(rank, 0, i), travels.contains(i) ? 0 : v[rank][i]);
        }
      }
    }
}

TEST(Importance, DrawsItsRanksAnewForEachGradientAndStep) {
  Coders coders(with_residual(codec({0.1}, 2)), vectors_of({50, 50}), 5);
  std::map<std::size_t, int> first;  // by rank: number of its proposals for the first gradient
  int together = 0;
  for (std::uint64_t step = 0; step < 300; ++step) {
    fill(coders, 2, step);
    coders.step();
    std::set<std::size_t> of[2];
    for (std::size_t rank = 0; rank < 5; ++rank) {
      base::ConstBytes bytes = coders.payloads(0)[rank];
      while (!bytes.empty()) {
        of[std::to_integer<std::size_t>(bytes[0])].insert(rank);
        std::vector<std::uint32_t> indices;
        bytes = sparse::read_indices(50, bytes.subspan(8), indices);
      }
    }
    ASSERT_EQ(of[0].size(), 2U);
    ASSERT_EQ(of[1].size(), 2U);
    for (const std::size_t rank : of[0]) ++first[rank];
    together += of[0] == of[1] ? 1 : 0;
  }
  for (std::size_t rank = 0; rank < 5; ++rank) EXPECT_NEAR(first[rank], 120, 40) << "rank " << rank;
  EXPECT_NEAR(together, 30, 25) << "one pair of ten by chance";
}

TEST(Importance, FlushesEveryElementOnceInAsManySteps) {
  Coders coders(with_residual(codec({1e9}, 1, 7)), vectors_of({100, 3}), 2);
  for (std::uint64_t step = 0; step < 21; ++step) {
    fill(coders, 2, step);
    coders.step();
    EXPECT_TRUE(proposers(coders).empty()) << "nothing is important: no bytes of masks";
    for (const auto& [tensor, elements] : {std::pair(0, 100), {1, 3}}) {
      const Range part = even_part(static_cast<std::size_t>(elements), 7, step % 7);
      for (std::size_t i = 0; i < static_cast<std::size_t>(elements); ++i)
        ASSERT_EQ(coders.at(1, static_cast<std::size_t>(tensor)).values[i] != 0, part.begin <= i && i < part.end);
    }
  }
}

TEST(Importance, WithoutAnythingImportantKeepsEverything) {
  Coders coders(with_residual(codec({1e9}, 1)), vectors_of({30, 30}), 2);
  fill(coders, 2, 0);
  const std::vector<float> before = coders.at(1, 1).values;
  std::ranges::fill(coders.at(0, 0).values, 0.0F);
  coders.step();
  EXPECT_EQ(coders.rounds(), 2U) << "every rank must start the round";
  for (std::size_t i = 0; i < 30; ++i) {
    EXPECT_EQ(coders.at(0, 1).values[i], 0);
    EXPECT_EQ(coders.residual(1, 1, i), before[i]);
  }
}

TEST(Importance, OfLayersOfZerosIsDefined) {
  for (const double beta : {0.0, 0.5}) {
    Coders coders(with_residual(codec({1, beta, 0.1}, 2)), vectors_of({40, 40}), 2);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      std::ranges::fill(coders.at(rank, 0).weights, 0.0F);  // a bias at initialisation
      std::ranges::fill(coders.at(rank, 0).values, 0.02F);
      std::ranges::fill(coders.at(rank, 1).weights, 0.0F);
      std::ranges::fill(coders.at(rank, 1).values, 0.0F);  // a layer without a gradient
    }
    coders.step();
    EXPECT_EQ(coders.at(0, 0).values, std::vector<float>(40, 0.02F)) << "0.02 / eps is 2, which is important";
    EXPECT_EQ(coders.at(0, 1).values, std::vector<float>(40, 0.0F));
  }
}

TEST(Importance, LetsElementsBelowTheThresholdTravelByChanceIfAsked) {
  for (const auto& [chance, expected] : {std::pair(0.0, 0.0), {1.0, 0.25}, {0.4, 0.1}}) {
    Coders coders(with_residual(codec({4}, 1, 0, chance)), vectors_of({40000}), 1);
    std::ranges::fill(coders.at(0).values, 1.01F);  // I = 1.01 / (1 + eps) = 1, a quarter of the threshold
    coders.step();
    const auto sent = std::ranges::count_if(coders.at(0).values, [](float x) { return x != 0; });
    EXPECT_NEAR(static_cast<double>(sent) / 40000, expected, 0.01);
  }
}

/// Two ranks; rank 0 sends `bytes` as its masks.
void hear(std::vector<std::byte> bytes) {
  Coders coders(with_residual(codec({1}, 1)), vectors_of({100, 100}), 2);
  fill(coders, 2, 0);
  coders.damage = [&](std::size_t rank, test::Payload& payload) {
    if (rank == 0) payload = bytes;
  };
  coders.step();
}

std::vector<std::byte> mask_of(std::uint32_t place, const std::vector<std::uint32_t>& indices, std::uint64_t elements) {
  std::vector<std::byte> bytes(8 + sparse::most_indices_bytes(indices.size(), elements));
  std::memcpy(bytes.data(), &place, 4);  // the threshold that follows it is 0
  bytes.resize(8 + sparse::write_indices(indices, elements, base::Bytes(bytes).subspan(8)));
  return bytes;
}

TEST(Importance, RefusesMasksThatNobodyWrites) {
  const auto joined = [](std::vector<std::byte> a, const std::vector<std::byte>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  const auto first = mask_of(0, {3, 50}, 100), second = mask_of(1, {0, 99}, 100);
  EXPECT_NO_THROW(hear({}));
  EXPECT_NO_THROW(hear(joined(first, second)));
  EXPECT_THROW(hear(joined(second, first)), Corrupt) << "out of order";
  EXPECT_THROW(hear(joined(first, first)), Corrupt) << "twice";
  EXPECT_THROW(hear(mask_of(2, {1}, 100)), Corrupt) << "there are two gradients";
  EXPECT_THROW(hear(mask_of(0xffff'ffff, {1}, 100)), Corrupt);
  EXPECT_THROW(hear(mask_of(0, {100}, 101)), Corrupt) << "beyond the gradient";
  EXPECT_THROW(hear(std::vector<std::byte>(3)), Corrupt);
  for (std::size_t length = 1; length < first.size(); ++length)
    EXPECT_THROW(hear({first.begin(), first.begin() + static_cast<std::ptrdiff_t>(length)}), Corrupt) << length;
}

/// The density of a tensor's union of masks in each step, on 4 ranks with gradients and weights from a normal
/// distribution.
std::vector<double> densities(Settings settings, std::size_t elements, std::uint64_t steps) {
  settings.feedback.kind = Feedback::Kind::residual;
  Coders coders(settings, vectors_of({elements}), 4);
  std::vector<double> found;
  for (std::uint64_t step = 0; step < steps; ++step) {
    fill(coders, 1, step);
    coders.step();
    const auto sent = std::ranges::count_if(coders.at(0).values, [](float x) { return x != 0; });
    found.push_back(static_cast<double>(sent) / static_cast<double>(elements));
    const auto threshold = [&](std::size_t rank) { return test::floats_of(coders.at(rank).kept).front(); };
    for (std::size_t rank = 1; rank < 4; ++rank) EXPECT_EQ(threshold(rank), threshold(0)) << "step " << step;
  }
  return found;
}

double mean_of(const std::vector<double>& values, std::size_t from) {
  return std::accumulate(values.begin() + static_cast<std::ptrdiff_t>(from), values.end(), 0.0) /
         static_cast<double>(values.size() - from);
}

TEST(Importance, FollowsATargetDensity) {
  for (const double target : {0.01, 0.1})
    for (const int masks : {1, 3}) {
      const auto found = densities(settings_of(fmt::format("importance:auto:{},{},0", target, masks)), 4000, 120);
      EXPECT_LT(found[0], (masks + 0.5) * target) << "the first threshold is a quantile on each proposer";
      EXPECT_NEAR(mean_of(found, 40), target, target / 10) << masks << " masks";
      EXPECT_LT(*std::ranges::max_element(found), 10 * target) << "residuals grow fast in the first steps";
    }
}

TEST(Importance, FollowsATargetDensityOfAFewElements) {
  EXPECT_NEAR(mean_of(densities(settings_of("importance:auto:0.02,1,0"), 10, 1500), 100), 0.02, 0.01)
      << "one element in five steps";
}

TEST(Importance, FlushesBesideItsTargetDensity) {
  const auto found = densities(settings_of("importance:auto:0.1,1,5"), 4000, 150);
  EXPECT_NEAR(mean_of(found, 50), 1 - (1 - 0.1) * (1 - 0.2), 0.03) << "a fifth is flushed, and a tenth is important";
}

TEST(Importance, WarmsUpFromAHighDensity) {
  Settings target = settings_of("importance:auto:0.01,1,0"), fixed = settings_of("importance:3,1,0");
  target.warmup = fixed.warmup = {.density = 0.5, .steps = 600};
  const auto with_target = densities(target, 1000, 800), with_alpha = densities(fixed, 1000, 800);
  const auto without = densities(settings_of("importance:3,1,0"), 1000, 800);
  EXPECT_NEAR(with_target[0], 0.5, 0.02);
  const std::vector<double> middle(with_target.begin() + 280, with_target.begin() + 320);
  EXPECT_NEAR(mean_of(middle, 0), std::sqrt(0.5 * 0.01), 0.02);
  EXPECT_NEAR(mean_of(with_target, 700), 0.01, 0.002);
  EXPECT_NEAR(with_alpha[0], 0.5, 0.02);
  EXPECT_NEAR(mean_of(with_alpha, 700), mean_of(without, 700), 0.02) << "alpha is fixed after the warm-up";
}

TEST(Importance, ReportsWhatItSent) {
  Coders coders(with_residual("importance:auto:0.05,1,0"), vectors_of({2000}), 1);
  SelectionReport report;
  coders.report = &report;
  std::uint64_t sent = 0;
  for (std::uint64_t step = 0; step < 20; ++step) {
    fill(coders, 1, step);
    coders.step();
    sent += static_cast<std::uint64_t>(std::ranges::count_if(coders.at(0).values, [](float x) { return x != 0; }));
  }
  EXPECT_EQ(report.sent, sent);
  EXPECT_EQ(report.elements, 20U * 2000);
  EXPECT_EQ(report.proposed, sent) << "one mask";
  EXPECT_GT(report.threshold, 0);
  EXPECT_GT(report.spread, 0);
}

TEST(Importance, ReportsTheElementsOfAllMasks) {
  for (const int masks : {2, 5}) {
    Coders coders(with_residual(codec({0.5}, masks)), vectors_of({900}), 5);
    SelectionReport report;
    coders.report = &report;
    fill(coders, 1, 0);
    std::vector<std::vector<float>> v;
    for (std::size_t rank = 0; rank < 5; ++rank) v.push_back(formed(coders, rank, 0, 0));
    coders.step();
    std::size_t proposed = 0;
    std::set<std::size_t> travels;
    for (const std::size_t rank : proposers(coders)) {
      std::set<std::size_t> mask = important(v[rank], coders.at(rank).weights, {0.5});
      proposed += mask.size();
      travels.merge(mask);
    }
    EXPECT_EQ(report.proposed, proposed);
    EXPECT_EQ(report.sent, travels.size());
    EXPECT_LT(report.sent, report.proposed) << "some element is in two masks";
  }
}

TEST(Importance, ReportsItsElementsByImportance) {
  Coders coders(with_residual("importance:1e9,1,0"), vectors_of({6}), 1);
  SelectionReport report;
  coders.report = &report;
  const float eps = 0.001F;  // weights are 1
  coders.at(0).values = {0, 1.5F * (1 + eps), -3 * (1 + eps), 2.5F * (1 + eps), 1e-6F, 1e6F};
  coders.step();
  Octaves expected{};
  expected[0] = 2;                    // 0 and 1e-6
  expected[16] = 1;                   // 1.5
  expected[17] = 2;                   // 2.5 and 3
  expected[expected.size() - 1] = 1;  // 1e6
  EXPECT_EQ(report.importances, expected);
  coders.at(0).values = std::vector<float>(6, 1.0F);
  coders.step();
  EXPECT_EQ(report.importances, expected) << "not every step is reported";
}

TEST(Importance, RefusesParametersThatMeanNothing) {
  for (const char* parameter :
       {"0", "-1", "1,0", "1,1.5", "1,1,-1", "1,1,0.5", "1,1,300,2", "1,1,300,0,-1", "1,1,300,0,0,0,0",
        "1,1,300,0,0,0,1,1", "nan", "auto:0", "auto:1.5", "auto:", "auto", "auto:-0.1", "1,auto:0.5", "auto:auto:0.5"})
    EXPECT_THROW(std::ignore = settings_of(std::string("importance:") + parameter), Misuse) << parameter;
  EXPECT_NO_THROW(std::ignore = settings_of("importance:0.05,4,0,0,0.5,0.1,1e-6"));
  EXPECT_NO_THROW(std::ignore = settings_of("importance:auto:0.017,4,0,0,0.5,0.1,1e-6"));
}

}  // namespace
}  // namespace syncopate::compress
