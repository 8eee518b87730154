// Selection keeps exactly the largest elements for every distribution, and feedback keeps the rest.
#include "compress/sparse/selection.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "base/random.hpp"
#include "compress/distributions.hpp"
#include "kernel/select.hpp"
#include "sanitized.hpp"

namespace syncopate::compress {
namespace {

using sparse::Selection;

/// The k largest magnitudes by a stable sort; zeros are left out.
std::vector<std::uint32_t> largest_by_sorting(const std::vector<float>& values, std::size_t k) {
  std::vector<std::uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::greater<>(), [&](std::uint32_t i) { return kernel::magnitude(values[i]); });
  order.resize(std::min(k, order.size()));
  std::erase_if(order, [&](std::uint32_t i) { return kernel::magnitude(values[i]) == 0; });
  std::ranges::sort(order);
  return order;
}

using test::kDistributions;

constexpr int kLong = syncopate::test::kSanitized ? 70'003 : 200'003;

class Largest : public testing::TestWithParam<std::string> {};

TEST_P(Largest, AreThoseOfAStableSort) {
  for (const std::size_t count : {0, 1, 63, 64, 65, 4097, 40'000, kLong}) {
    const base::CounterRandom random{1, count};
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = kDistributions.at(GetParam())(random, i);
    for (const std::size_t k :
         {std::size_t{0}, std::size_t{1}, count / 1000, count / 100, count / 3, count, count + 9}) {
      Selection selection;
      const std::vector<float> before = values;
      const Compensated tensor({.values = Buffer(std::span(values)), .rows = count}, {});
      sparse::select_largest(tensor, k, selection);
      const auto expected = largest_by_sorting(before, k);
      ASSERT_TRUE(std::ranges::equal(selection.indices(), expected)) << count << " elements, k = " << k;
      for (std::size_t i = 0; i < selection.size(); ++i)
        ASSERT_EQ(kernel::magnitude(selection.values()[i]), kernel::magnitude(before[expected[i]]));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Largest,
                         testing::Values("normal", "heavy_tail", "all_equal", "all_zero", "few_not_zero", "ascending",
                                         "denormal", "one_block_is_large", "nan_and_infinity"),
                         [](const auto& of) { return of.param; });

// The sampled elements are far larger than all others, but fewer than k.
TEST(Selecting, AThresholdThatTheSampleSetTooHighIsLowered) {
  constexpr std::size_t kCount = 200'000, kWanted = 5000, kLarge = 4000;
  const base::CounterRandom random{kCount, kWanted};
  std::vector<float> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) values[i] = 1 + 1e-6F * static_cast<float>(i);
  constexpr std::size_t kNeighbours = 8;
  for (std::size_t i = 0; i < kLarge / kNeighbours; ++i)
    std::fill_n(values.begin() + random.below(kCount - kNeighbours + 1, i), kNeighbours, 100.0F);
  const std::vector<float> before = values;
  Selection selection;
  sparse::select_largest(Compensated({.values = Buffer(std::span(values)), .rows = kCount}, {}), kWanted, selection);
  EXPECT_TRUE(std::ranges::equal(selection.indices(), largest_by_sorting(before, kWanted)));
}

TEST(Selecting, EveryThresholdTakesWhatReachesItAtEveryLength) {
  const base::CounterRandom random{7};
  for (std::size_t count = 0; count < 300; ++count) {
    std::vector<float> values(count + 1);
    for (std::size_t i = 0; i <= count; ++i) values[i] = static_cast<float>(random.uniform(i) - 0.5);
    for (const float least : {0.0F, 0.1F, 0.45F, 2.0F}) {
      std::vector<std::uint32_t> indices(count), expected;
      std::vector<float> found(count);
      for (std::uint32_t i = 0; i < count; ++i)
        if (std::fabs(values[i]) >= least) expected.push_back(100 + i);
      indices.resize(kernel::select_at_least(kernel::magnitude(least), {values.data(), count, 100},
                                             {indices.data(), found.data()}));
      ASSERT_EQ(indices, expected) << count << " elements, at least " << least;
      for (std::size_t i = 0; i < indices.size(); ++i) ASSERT_EQ(found[i], values[indices[i] - 100]);
    }
    std::uint32_t index = 0;
    float value = 0;
    EXPECT_EQ(kernel::select_at_least(0x8000'0000U, {values.data(), 1, 0}, {&index, &value}), 0U);
  }
}

/// A tensor whose state is kept across steps.
struct Stateful {
  std::vector<float> values;
  std::vector<std::byte> kept, next;
  Feedback feedback;

  Stateful(std::size_t count, Feedback with) : values(count), feedback(std::move(with)) {
    kept.resize(feedback_bytes(feedback, tensor()));
    next.resize(kept.size());
  }
  [[nodiscard]] Tensor tensor() {
    return {.values = Buffer(std::span(values)), .kept = kept, .next = next, .rows = values.size()};
  }
  [[nodiscard]] float state(const std::vector<std::byte>& bytes, std::size_t i) const {
    float value = 0;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    return value;
  }
};

TEST(Residual, IsWhatWasNotSentBitForBit) {
  Stateful memory(5000, {.kind = Feedback::Kind::residual});
  const base::CounterRandom random{3};
  std::vector<float> residual(5000);
  for (std::uint64_t step = 0; step < 5; ++step) {
    for (std::size_t i = 0; i < 5000; ++i)
      memory.values[i] = static_cast<float>(random.uniform(step * 5000 + i) - 0.5) * 1e-3F;
    std::vector<float> formed(5000);
    for (std::size_t i = 0; i < 5000; ++i) formed[i] = memory.values[i] + residual[i];
    Selection selection;
    const Compensated tensor(memory.tensor(), memory.feedback);
    sparse::select_largest(tensor, 100, selection);
    const std::vector<float> inexact(100, 0.25e-3F);
    if (step % 2 == 0)
      tensor.sent(selection.indices());
    else
      tensor.sent(selection.indices(), inexact);
    residual = formed;
    for (const std::uint32_t i : selection.indices()) residual[i] = step % 2 == 0 ? 0 : formed[i] - 0.25e-3F;
    for (std::size_t i = 0; i < 5000; ++i) ASSERT_EQ(memory.state(memory.next, i), residual[i]) << step << ", " << i;
    std::swap(memory.kept, memory.next);
  }
}

TEST(MomentumCorrection, AccumulatesVelocityAndMasksWhatWasSent) {
  for (const bool nesterov : {false, true}) {
    Stateful memory(3, {.kind = Feedback::Kind::momentum, .momentum = 0.5F, .nesterov = nesterov});
    const auto run = [&](std::vector<float> gradient, std::vector<std::uint32_t> sent) {
      memory.values = std::move(gradient);
      const Compensated tensor(memory.tensor(), memory.feedback);
      tensor.form({0, 3});
      tensor.sent(sent);
      std::swap(memory.kept, memory.next);
    };
    run({4, 8, 0}, {1});
    run({0, 0, 2}, {});
    // Velocities: 4 then 2; 8, masked, then 0; 0 then 2. Nesterov's: (0 + 4) / 2 = 2, then 1; masked; then 1.
    const std::vector<float> residual =
        nesterov ? std::vector<float>{2 + 4 + 1, 0, 1 + 2} : std::vector<float>{6, 0, 2};
    const std::vector<float> velocity = nesterov ? std::vector<float>{1, 0, 1} : std::vector<float>{2, 0, 2};
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(memory.state(memory.kept, i), residual[i]) << nesterov << ", " << i;
      EXPECT_EQ(memory.state(memory.kept, 3 + i), velocity[i]) << nesterov << ", " << i;
    }
  }
}

TEST(LocalClipping, BoundsTheGradientAndNotTheResidual) {
  Stateful memory(2, {.kind = Feedback::Kind::residual, .clip_norm = 1});
  memory.values = {3, 4};
  Compensated(memory.tensor(), memory.feedback).form({0, 2});
  EXPECT_FLOAT_EQ(memory.state(memory.next, 0), 0.6F);
  EXPECT_FLOAT_EQ(memory.state(memory.next, 1), 0.8F);
  std::swap(memory.kept, memory.next);
  memory.values = {0.3F, 0.4F};
  Compensated(memory.tensor(), memory.feedback).form({0, 2});
  EXPECT_FLOAT_EQ(memory.state(memory.next, 0), 0.9F);
}

}  // namespace
}  // namespace syncopate::compress
