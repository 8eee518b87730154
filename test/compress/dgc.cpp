// DGC selects all elements that reach a threshold, at least 0.8 k if lowering it suffices, and never more than k.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "compress/coders.hpp"
#include "compress/distributions.hpp"
#include "kernel/norm.hpp"
#include "kernel/select.hpp"
#include "sanitized.hpp"

namespace syncopate::compress {
namespace {

using test::Coders;
using test::Values;
using test::vectors_of;
using test::with_residual;

constexpr std::size_t kElements = 20000, kWanted = 200;

/// Indices of the elements that are sent; the others are combined as zero.
std::vector<std::uint32_t> selected_of(std::vector<float> values, std::uint64_t step = 0) {
  Coders coders(with_residual("dgc:0.01"), vectors_of({values.size()}), 1);
  for (std::uint64_t before = 0; before < step; ++before) coders.step();  // steps with gradients of zeros
  coders.at(0).values = std::move(values);
  coders.step();
  std::vector<std::uint32_t> indices;
  for (std::uint32_t i = 0; i < coders.at(0).values.size(); ++i)
    if (kernel::magnitude(coders.at(0).values[i]) != 0) indices.push_back(i);
  return indices;
}

std::vector<float> drawn(const std::string& distribution, std::uint64_t seed) {
  const base::CounterRandom random{seed};
  std::vector<float> values(kElements);
  for (std::size_t i = 0; i < kElements; ++i) values[i] = test::kDistributions.at(distribution)(random, i);
  return values;
}

/// Whether `indices` are all elements that reach some threshold, up to the last index.
bool are_first_of_a_threshold(const std::vector<float>& values, const std::vector<std::uint32_t>& indices) {
  std::uint32_t least = 0x7fff'ffff;
  for (const std::uint32_t i : indices) least = std::min(least, kernel::magnitude(values[i]));
  std::size_t reach = 0;
  for (std::uint32_t i = 0; i <= indices.back(); ++i) reach += kernel::magnitude(values[i]) >= least ? 1 : 0;
  return reach == indices.size();
}

bool are_largest(const std::vector<float>& values, const std::vector<std::uint32_t>& indices) {
  std::uint32_t least = 0x7fff'ffff;
  for (const std::uint32_t i : indices) least = std::min(least, kernel::magnitude(values[i]));
  std::size_t above = 0;
  for (const float value : values) above += kernel::magnitude(value) > least ? 1 : 0;
  return above < indices.size();
}

TEST(Dgc, SelectsWhatReachesASampledThreshold) {
  std::size_t accepted = 0, reselected = 0;
  for (std::uint64_t step = 0; step < 40; ++step)
    for (const char* distribution : {"normal", "heavy_tail"}) {
      const std::vector<float> values = drawn(distribution, step);
      const auto indices = selected_of(values, step);
      ASSERT_LE(indices.size(), kWanted);
      // With a heavy tail, the sampled threshold can be too high even after ten factors of 0.8.
      if (std::string(distribution) == "normal") {
        ASSERT_GE(indices.size(), kWanted * 8 / 10) << "step " << step;
      }
      const bool is_accepted = are_first_of_a_threshold(values, indices), is_reselected = are_largest(values, indices);
      ASSERT_TRUE(is_accepted || is_reselected) << distribution << ", step " << step;
      if (is_accepted) ++accepted;
      if (is_reselected && indices.size() == kWanted) ++reselected;
    }
  EXPECT_GT(accepted, 10U);
  EXPECT_GT(reselected, 10U) << "a sample of 200 elements is often wrong by more than 1.3";
}

// All elements reach every threshold; the selection among them is exact.
TEST(Dgc, ChoosesExactlyAmongFarTooMany) {
  const std::vector<float> equal(kElements, -2.0F);
  const auto indices = selected_of(equal);
  ASSERT_EQ(indices.size(), kWanted);
  EXPECT_EQ(indices.back(), kWanted - 1) << "of equal ones those of lower index";
}

// One element in 200 has magnitude 1. If the sample has two or more of them, its threshold is 1, which too few elements
// reach.
TEST(Dgc, LowersAThresholdThatTooFewReachTenTimesAtMost) {
  const base::CounterRandom random{8};
  std::size_t large = 0;
  for (std::size_t i = 0; i < kElements; ++i) large += random.below(200, i) == 0 ? 1 : 0;
  ASSERT_LT(large, kWanted * 8 / 10);
  for (const float lower : {0.2F, 0.05F}) {
    std::set<std::size_t> sizes;
    for (std::uint64_t step = 0; step < 30; ++step) {
      std::vector<float> values(kElements);
      for (std::size_t i = 0; i < kElements; ++i) values[i] = random.below(200, i) == 0 ? 1.0F : lower;
      sizes.insert(selected_of(values, step).size());
    }
    EXPECT_TRUE(sizes.contains(kWanted));
    EXPECT_EQ(sizes.contains(large), lower < 0.1F) << "0.8^10 is 0.107: no threshold gets lower";
    EXPECT_EQ(sizes.size(), lower < 0.1F ? 2U : 1U);
  }
}

/// One feedback for each formula of v, clipped to 1.
std::vector<Feedback> clipped_feedbacks() {
  return {{.kind = Feedback::Kind::residual, .clip_norm = 1},
          {.kind = Feedback::Kind::momentum, .momentum = 0.9F, .clip_norm = 1},
          {.kind = Feedback::Kind::momentum, .momentum = 0.9F, .nesterov = true, .clip_norm = 1}};
}

TEST(Dgc, SendsAboutTheWantedNumberWhereLocalClippingShortensTheGradient) {
  for (const Feedback& feedback : clipped_feedbacks())
    for (const double ratio : {10.0, 100.0, 1000.0}) {
      Settings settings = settings_of("dgc:0.01");
      settings.feedback = feedback;
      Coders coders(settings, vectors_of({kElements}), 1);
      for (std::uint64_t step = 0; step < 15; ++step) {
        coders.at(0).values = drawn("normal", step);
        double squares = 0;
        for (const float value : coders.at(0).values) squares += double{value} * value;
        for (float& value : coders.at(0).values) value *= static_cast<float>(ratio / std::sqrt(squares));
        coders.step();
        const auto zeros = static_cast<std::size_t>(std::ranges::count(coders.at(0).values, 0.0F));
        EXPECT_GE(kElements - zeros, kWanted * 8 / 10) << text_of(feedback) << ", " << ratio << ", step " << step;
        EXPECT_LE(kElements - zeros, kWanted);
      }
    }
}

// The thresholds of all codecs (sampled, estimated, counted) are those of the elements that feedback forms.
TEST(LocalClipping, SelectsAsIfTheGradientHadBeenShort) {
  for (const std::string codec :
       {"topk:0.01", "mstopk:0.01", "dgc:0.01", "sparse_quantised:0.01,4", "threshold:0.001", "importance:0.001,1,300"})
    for (const Feedback& feedback : clipped_feedbacks()) {
      Settings with = settings_of(codec), without = with;
      with.feedback = without.feedback = feedback;
      without.feedback.clip_norm = 0;
      constexpr std::size_t kLarge = 70'000;  // above this size, topk estimates its threshold
      Coders clipped(with, vectors_of({kLarge}), 1), shortened(without, vectors_of({kLarge}), 1);
      for (std::uint64_t step = 0; step < (syncopate::test::kSanitized ? 2 : 5); ++step) {
        const base::CounterRandom random{step};
        Values& values = clipped.at(0).values;
        for (std::size_t i = 0; i < kLarge; ++i) values[i] = test::kDistributions.at("normal")(random, i);
        const auto* const bytes = reinterpret_cast<const std::byte*>(values.data());
        const auto scale = static_cast<float>(1 / std::sqrt(kernel::squared_norm(DType::f32, bytes, kLarge)));
        ASSERT_LT(scale, 0.01F);
        shortened.at(0).values = values;
        for (float& value : shortened.at(0).values) value *= scale;
        clipped.step();
        shortened.step();
        ASSERT_EQ(values, shortened.at(0).values) << codec << ", " << text_of(feedback) << ", step " << step;
      }
    }
}

/// The formed elements of the gradient {3, 4} times `factor`, clipped to `bound`.
Values formed(float factor, double bound) {
  Values gradient{3 * factor, 4 * factor}, kept(2), next(2);
  const Feedback feedback{.kind = Feedback::Kind::residual, .clip_norm = bound};
  const Compensated tensor({.values = Buffer(std::span(gradient)),
                            .kept = std::as_writable_bytes(std::span(kept)),
                            .next = std::as_writable_bytes(std::span(next)),
                            .rows = 2},
                           feedback);
  tensor.form({0, 2});
  return next;
}

TEST(LocalClipping, AppliesToEveryNormAboveTheBound) {
  EXPECT_EQ(formed(1, 5), (Values{3, 4})) << "a norm of exactly the bound";
  EXPECT_EQ(formed(0.5F, 5), (Values{1.5F, 2})) << "below the bound";
  EXPECT_EQ(formed(1, 0), (Values{3, 4})) << "0: no bound";
  for (const float factor : {1.000001F, 1.001F, 1.5F, 2.0F, 1e6F}) {
    const Values values = formed(factor, 5);
    EXPECT_NE(values, (Values{3 * factor, 4 * factor})) << factor;
    EXPECT_NEAR(std::hypot(values[0], values[1]), 5, 3e-6) << factor;
  }
}

TEST(Estimate, IsTheElementThatFeedbackForms) {
  for (const Feedback& feedback : clipped_feedbacks())
    for (const double bound : {0.0, 0.5, 1e9}) {
      Feedback with = feedback;
      with.clip_norm = bound;
      const base::CounterRandom random{3};
      Values gradient(1000), kept(2000), next(2000);
      for (std::size_t i = 0; i < 1000; ++i) gradient[i] = test::kDistributions.at("normal")(random, i);
      for (std::size_t i = 0; i < 2000; ++i) kept[i] = 0.01F * test::kDistributions.at("normal")(random, 1000 + i);
      const std::size_t state = (with.kind == Feedback::Kind::momentum ? 2 : 1) * gradient.size();
      const Compensated tensor({.values = Buffer(std::span(gradient)),
                                .kept = std::as_writable_bytes(std::span(kept).first(state)),
                                .next = std::as_writable_bytes(std::span(next).first(state)),
                                .rows = 1000},
                               with);
      Values estimates;
      for (std::size_t i = 0; i < 1000; ++i) estimates.push_back(tensor.estimate(i));
      tensor.form({0, 1000});
      for (std::size_t i = 0; i < 1000; ++i) ASSERT_NEAR(estimates[i], tensor.elements()[i], 4e-6) << text_of(with);
    }
}

TEST(Dgc, SamplesMomentumToo) {
  // With momentum, v = r + m u + g: for a velocity of 1 and gradients of 0.001, the sample's threshold is about m.
  std::vector<float> values(1000, 0.001F);
  std::vector<float> kept(2000), next(2000);
  std::fill(kept.begin() + 1000, kept.end(), 1.0F);
  const Feedback feedback{.kind = Feedback::Kind::momentum, .momentum = 0.5F};
  const Compensated tensor({.values = Buffer(std::span(values)),
                            .kept = std::as_writable_bytes(std::span(kept)),
                            .next = std::as_writable_bytes(std::span(next)),
                            .rows = 1000},
                           feedback);
  EXPECT_FLOAT_EQ(tensor.estimate(7), 0.501F);
  tensor.form({0, 1000});
  EXPECT_FLOAT_EQ(tensor.elements()[7], 0.501F);
}

}  // namespace
}  // namespace syncopate::compress
