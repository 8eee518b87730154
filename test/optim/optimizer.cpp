// The public optimizer: its state can be moved to another one, and unsupported options are refused by name.
#include "syncopate/optimizer.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "optim/drawn.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate::test {
namespace {

std::string refused(const OptimizerOptions& options) {
  return test::thrown<Misuse>([&] { require_allowed(options); });
}

TEST(OptimizerState, GoesOnInAnotherOptimizerBitForBit) {
  for (const optim::Rule* rule : optim::rules()) {
    const OptimizerOptions options{.rule = std::string(rule->name)};
    Tensor whole(normal(5000, 1), options), first(normal(5000, 1), options);
    for (std::uint64_t step = 1; step <= 6; ++step) whole.update(normal(5000, step), 0.1, step);
    for (std::uint64_t step = 1; step <= 3; ++step) first.update(normal(5000, step), 0.1, step);
    Tensor second(first.weights(), options);
    second.optimizer().restore(rule->name, first.optimizer().state());
    for (std::uint64_t step = 4; step <= 6; ++step) second.update(normal(5000, step), 0.1, step);
    EXPECT_EQ(bits_of(second.weights()), bits_of(whole.weights())) << rule->name;
  }
}

TEST(OptimizerState, HasTheRulesNamesAndAFloatForEveryWeight) {
  std::vector<float> first(3), second(5);
  const auto state = [&](const char* rule) {
    return Optimizer({{"a", std::span(first)}, {"b", std::span(second)}}, {.rule = rule}).state().size();
  };
  EXPECT_EQ(state("sgd"), 0U);
  EXPECT_EQ(state("lars"), 1U);
  Optimizer adam({{"a", std::span(first)}, {"b", std::span(second)}}, {.rule = "adam"});
  std::vector<float> gradient(5, 1);
  adam.update(1, gradient, {.rate = 0.1, .step = 1});
  const auto kept = adam.state();
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(kept[0].name, "mean");
  EXPECT_EQ(kept[1].name, "square");
  EXPECT_EQ(std::vector(kept[0].values.begin(), kept[0].values.end()),
            (std::vector<float>{0, 0, 0, 0.1F, 0.1F, 0.1F, 0.1F, 0.1F}));
}

// These weights are too many for any memory, and nothing is asked of them.
TEST(OptimizerState, NeedsNoMemoryWhereNothingIsUpdated) {
  float weight = 0;
  const Optimizer optimizer({{"w", Buffer(&weight, std::size_t{1} << 50, DType::f32)}}, {.rule = "adam"});
  EXPECT_EQ(optimizer.rule(), "adam");
}

TEST(OptimizerState, OfAnotherRuleNameOrLengthIsRefused) {
  Tensor adam(std::vector<float>(4), {.rule = "adam"}), longer(std::vector<float>(5), {.rule = "adam"});
  auto state = adam.optimizer().state();
  const auto restore = [&](Tensor& into, std::string_view rule, const std::vector<OptimizerState>& saved) {
    return test::thrown<Misuse>([&] { into.optimizer().restore(rule, saved); });
  };
  EXPECT_EQ(restore(adam, "adamw", state), "the saved state is of optimizer adamw, this one is adam");
  EXPECT_EQ(restore(longer, "adam", state), "the saved 'mean' has 4 elements instead of 5");
  EXPECT_EQ(restore(adam, "adam", {state[0]}), "optimizer adam keeps 2 vectors, 1 were saved");
  std::swap(state[0], state[1]);
  EXPECT_EQ(restore(adam, "adam", state), "the saved state 0 is 'square'; optimizer adam expects 'mean'");
}

TEST(OptimizerSettings, WhatARuleDoesNotTakeIsRefusedWithWhatItTakes) {
  EXPECT_EQ(refused({.rule = "adam", .hyperparameters = {{"momentum", 0.9}}}),
            "optimizer adam takes no momentum; it takes beta1, beta2, epsilon, weight_decay");
  EXPECT_EQ(refused({.rule = "sgd", .hyperparameters = {{"trust", 0.1}}}),
            "optimizer sgd takes no trust; it takes weight_decay");
  EXPECT_EQ(refused({.rule = "lars", .hyperparameters = {{"trust", 0.1}, {"trust", 0.2}}}),
            "trust is given twice; allowed: once");
  EXPECT_EQ(refused({.rule = "adamw", .corrected = true}),
            "optimizer adamw with feedback momentum: it cannot use gradients that already contain momentum; allowed: "
            "momentum, nesterov");
  const std::string unknown = refused({.rule = "rmsprop"});
  for (const optim::Rule* rule : optim::rules())
    EXPECT_NE(unknown.find(rule->name), std::string::npos) << unknown << " without " << rule->name;
}

TEST(OptimizerSettings, EveryHyperparameterHasLimitsWithinWhichItsUsualValueLies) {
  for (const optim::Rule* rule : optim::rules()) {
    const std::string name(rule->name);
    for (const optim::Hyperparameter& one : rule->takes) {
      const auto with = [&](double value) {
        return refused({.rule = name, .hyperparameters = {{std::string(one.name), value}}});
      };
      EXPECT_EQ(with(one.usual), "no error") << name << ' ' << one.name;
      for (const double bad : {-0.1, 1e31, std::numeric_limits<double>::quiet_NaN()})
        EXPECT_EQ(with(bad).find(std::string(one.name) + " of optimizer " + name + " is "), 0U) << with(bad);
    }
  }
  EXPECT_EQ(refused({.rule = "adam", .hyperparameters = {{"beta1", 1}}}),
            "beta1 of optimizer adam is 1; allowed: from 0 to below 1");
  EXPECT_EQ(refused({.rule = "momentum", .hyperparameters = {{"momentum", 1}}}), "no error");
  EXPECT_EQ(refused({.rule = "lars", .hyperparameters = {{"trust", 0}}}),
            "trust of optimizer lars is 0; allowed: above 0 to 1e+30");
}

TEST(OptimizerUse, WeightsAndUpdatesThatCannotBeAreRefused) {
  std::vector<float> weights(4), gradient(4), shorter(3);
  std::vector<double> wide(4);
  const auto made = [&](std::vector<WeightTensor> tensors) {
    return test::thrown<Misuse>([&] { const Optimizer optimizer(std::move(tensors)); });
  };
  EXPECT_EQ(made({{"a", std::span(weights)}, {"a", std::span(gradient)}}),
            "two tensors are named 'a'; allowed: unique names");
  EXPECT_EQ(made({{"a", std::span(wide)}}), "the weights of 'a' are of type f64; allowed: f32");
  EXPECT_EQ(made({{"a", std::span(weights).first(0)}}), "'a' has no weights; allowed: 1 and more");

  Optimizer optimizer({{"a", std::span(weights)}});
  const auto updated = [&](std::size_t i, std::span<float> g, UpdateStep at) {
    return test::thrown<Misuse>([&] { optimizer.update(i, g, at); });
  };
  EXPECT_EQ(updated(1, gradient, {.rate = 1}), "tensor 1 of an optimizer of 1");
  EXPECT_EQ(updated(0, shorter, {.rate = 1}), "the gradient of 'a' has 3 elements instead of 4");
  EXPECT_EQ(updated(0, gradient, {.rate = -1}), "a learning rate of -1; allowed: 0 or more");
  EXPECT_EQ(updated(0, gradient, {.rate = std::numeric_limits<double>::infinity()}),
            "a learning rate of inf; allowed: 0 or more");
  EXPECT_EQ(updated(0, gradient, {.rate = 1, .step = 0}), "step 0 of an optimizer; allowed: steps counted from 1");
}

}  // namespace
}  // namespace syncopate::test
