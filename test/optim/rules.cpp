// Every rule of the shelf against its paper's formulas in f64, over several steps, at many lengths.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "optim/drawn.hpp"
#include "optim/reference.hpp"
#include "syncopate/error.hpp"

namespace syncopate::test {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// The knobs that the rule takes, by name.
OptimizerOptions options_of(std::string_view rule, const Knobs& knobs) {
  const std::map<std::string_view, double> all{{"momentum", knobs.momentum}, {"weight_decay", knobs.decay},
                                               {"beta1", knobs.beta1},       {"beta2", knobs.beta2},
                                               {"epsilon", knobs.epsilon},   {"trust", knobs.trust}};
  OptimizerOptions options{.rule = std::string(rule)};
  for (const optim::Hyperparameter& one : optim::rule_named(rule).takes)
    options.hyperparameters.emplace_back(one.name, all.at(one.name));
  return options;
}

struct Case {
  std::string rule;
  bool spared = false, corrected = false;
};

void expect_follows(const Case& of, std::size_t count) {
  const Knobs knobs;
  OptimizerOptions options = options_of(of.rule, knobs);
  options.corrected = of.corrected;
  const std::vector<float> start = normal(count, count);
  Tensor tensor(start, options, of.spared);
  Reference reference(start, knobs, of.spared, of.corrected);
  for (std::uint64_t step = 1; step <= 12; ++step) {
    const std::vector<float> gradient = normal(count, 1000 * step + count);
    const double rate = 0.05 / static_cast<double>(step);
    tensor.update(gradient, rate, step);
    reference.step(of.rule, gradient, rate, step);
    ASSERT_EQ(tensor.left_of_gradient(), std::vector<float>(count)) << of.rule;
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_NEAR(tensor.weights()[i], reference.w[i], 1e-5)
          << of.rule << (of.spared ? ", spared" : "") << (of.corrected ? ", corrected" : "") << ": " << i << " of "
          << count << " after step " << step;
  }
}

TEST(Rules, FollowTheirPapersAtEveryLength) {
  for (const optim::Rule* rule : optim::rules()) {
    for (std::size_t count = 1; count <= 70; ++count) expect_follows({std::string(rule->name)}, count);
    expect_follows({std::string(rule->name)}, 70'001);
  }
}

TEST(Rules, SparedTensorsHaveNoDecayAndNoTrustRatio) {
  for (const optim::Rule* rule : optim::rules()) expect_follows({std::string(rule->name), true}, 37);
}

TEST(Rules, GradientsWithTheirMomentumGetOnlyTheDecaysMomentum) {
  for (const optim::Rule* rule : optim::rules())
    if (rule->takes_corrected) expect_follows({std::string(rule->name), false, true}, 37);
}

TEST(Rules, ChangeNothingWhereThereIsNothing) {
  for (const optim::Rule* rule : optim::rules()) {
    const optim::Hyperparameters usual = optim::hyperparameters_of(*rule, {});
    const optim::Step step{usual, {.rate = 0.1, .step = 1}};
    if (rule->prepare != nullptr) rule->prepare(step, {});
    rule->update(step, {});
  }
}

// Without this, a zero gradient would make the ratio infinite and zero weights would make it zero; both stop learning.
TEST(Rules, AZeroNormMakesATrustRatioOfOne) {
  const std::vector<float> gradient = normal(100, 7), none(100);
  Tensor lars(none, {.rule = "lars", .hyperparameters = {{"weight_decay", 0.5}}});
  lars.update(gradient, 0.25, 1);
  for (std::size_t i = 0; i < none.size(); ++i) EXPECT_EQ(lars.weights()[i], -0.25F * gradient[i]);

  const std::vector<std::pair<std::string, double>> same{{"weight_decay", 0.5}, {"epsilon", 1e-3}};
  Tensor lamb(none, {.rule = "lamb", .hyperparameters = same}), adamw(none, {.rule = "adamw", .hyperparameters = same});
  lamb.update(gradient, 0.25, 1);
  adamw.update(gradient, 0.25, 1);
  EXPECT_EQ(bits_of(lamb.weights()), bits_of(adamw.weights()));

  const std::vector<float> start(100, 2.0F);
  Tensor decays(start, {.rule = "lars", .hyperparameters = {{"weight_decay", 0.5}}});
  decays.update(none, 0.25, 1);
  EXPECT_EQ(decays.weights(), std::vector<float>(100, 2.0F - 0.25F * 0.5F * 2.0F));
  Tensor rests(start, {.rule = "lamb", .hyperparameters = {{"weight_decay", 0}}});
  rests.update(none, 0.25, 1);
  EXPECT_EQ(rests.weights(), start);
}

TEST(Rules, AGradientOfAlmostNothingDoesNotMakeTheRatioInfinite) {
  Tensor lars(std::vector<float>(64, 1e3F), {.rule = "lars", .hyperparameters = {{"weight_decay", 0}}});
  lars.update(std::vector<float>(64, 1e-42F), 1, 1);
  for (const float weight : lars.weights()) EXPECT_TRUE(std::isfinite(weight) && weight < 1e3F) << weight;
}

std::ptrdiff_t finite(const std::vector<float>& values) {
  return std::ranges::count_if(values, [](float value) { return std::isfinite(value); });
}

TEST(Rules, AGradientThatIsNotFiniteSpoilsItsOwnWeightAndNoOtherTensor) {
  for (const optim::Rule* rule : optim::rules()) {
    for (const float bad : {kNaN, kInfinity}) {
      std::vector<float> first = normal(50, 1), second = normal(50, 2);
      Optimizer optimizer({{"first", std::span(first)}, {"second", std::span(second)}},
                          {.rule = std::string(rule->name)});
      std::vector<float> gradient = normal(50, 3);
      gradient[17] = bad;
      optimizer.update(0, gradient, {.rate = 0.1, .step = 1});
      gradient = normal(50, 4);
      optimizer.update(1, gradient, {.rate = 0.1, .step = 1});
      EXPECT_FALSE(std::isfinite(first[17])) << rule->name;
      EXPECT_EQ(finite(second), 50) << rule->name;
      const bool whole = rule->trust != nullptr && std::isnan(bad);
      EXPECT_LE(finite(first), whole ? 0 : 49) << rule->name;
      EXPECT_GE(finite(first), rule->trust != nullptr ? 0 : 49) << rule->name;
    }
  }
}

// The descriptor's cost: an update reads and writes the weights, the gradient, and each state.
TEST(Rules, MoveAtLeastEveryMemoryTwice) {
  for (const optim::Rule* rule : optim::rules()) {
    const std::size_t least = 8 * (2 + rule->state.size());
    if (rule->trust == nullptr) {
      EXPECT_EQ(rule->moved_bytes, least) << rule->name;
    } else {
      EXPECT_GT(rule->moved_bytes, least) << rule->name;
    }
  }
}

}  // namespace
}  // namespace syncopate::test
