// Tensors in parts: cut over threads or ranks in any way that the law allows, they end with the same bits as whole.
#include <gtest/gtest.h>

#include <thread>

#include "optim/drawn.hpp"
#include "optim/norms.hpp"
#include "sanitized.hpp"

namespace syncopate::test {
namespace {

constexpr std::size_t kPieces = kSanitized ? 2 : 5;
constexpr std::size_t kCount = kPieces * 16 * optim::kBlock + 3 * optim::kBlock + 1234;  // pieces, blocks and a rest

std::vector<std::uint32_t> updated(std::string_view rule, const ParallelFor& parallel) {
  Tensor tensor(normal(kCount, 1), {.rule = std::string(rule), .parallel = parallel});
  for (std::uint64_t step = 1; step <= 3; ++step) tensor.update(normal(kCount, 10 + step), 0.1, step);
  return bits_of(tensor.weights());
}

void backwards(std::size_t count, const std::function<void(std::size_t)>& body) {
  while (count-- > 0) body(count);
}

void on_threads(std::size_t count, const std::function<void(std::size_t)>& body) {
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
}

TEST(Parts, OrderAndThreadsChangeNoBit) {
  for (const optim::Rule* rule : optim::rules()) {
    const auto whole = updated(rule->name, {});
    EXPECT_EQ(updated(rule->name, backwards), whole) << rule->name;
    EXPECT_EQ(updated(rule->name, on_threads), whole) << rule->name;
  }
}

/// A tensor and its states, which ranks update in parts.
struct Divided {
  std::vector<float> weights = normal(kCount, 1), gradient;
  std::vector<float> state[optim::kMostStates] = {std::vector<float>(kCount), std::vector<float>(kCount)};

  [[nodiscard]] optim::TensorSlice whole() {
    return {std::span(weights), std::span(gradient), {state[0].data(), state[1].data()}};
  }
};

/// As `Optimizer::update`, by ranks that own the parts between `cuts`: each forms directions and squares of its own
/// blocks, all gather the squares, and each applies its part.
void update_divided(const optim::Rule& rule, Divided& tensor, const std::vector<Range>& cuts, std::uint64_t t) {
  const optim::Hyperparameters usual = optim::hyperparameters_of(rule, {});
  optim::Step step{usual, {.rate = 0.1, .step = t}};
  std::vector<optim::Squares> gathered;
  for (const Range& cut : cuts) {
    if (rule.trust == nullptr) break;
    for (std::size_t at = cut.begin; at < cut.end; at += optim::kBlock) {
      const optim::TensorSlice block = tensor.whole().cut({at, std::min(cut.end, at + optim::kBlock)});
      if (rule.prepare != nullptr) rule.prepare(step, block);
      gathered.push_back(optim::squares_of(block));
    }
  }
  if (rule.trust != nullptr) step.trust = optim::trust_of(rule, usual, optim::norms_of(gathered));
  for (auto cut = cuts.rbegin(); cut != cuts.rend(); ++cut) rule.update(step, tensor.whole().cut(*cut));
}

TEST(Parts, RanksThatDivideATensorAtBlocksEndWithTheBitsOfOneThatHasItWhole) {
  const std::size_t blocks = optim::blocks_of(kCount);
  for (const optim::Rule* rule : optim::rules()) {
    const auto whole = updated(rule->name, {});
    for (const std::size_t ranks : {std::size_t{1}, std::size_t{3}, std::size_t{4}, blocks}) {
      std::vector<Range> cuts;
      for (std::size_t r = 0; r < ranks; ++r) {
        const Range part = even_part(blocks, ranks, r);
        cuts.push_back({part.begin * optim::kBlock, std::min(kCount, part.end * optim::kBlock)});
      }
      Divided tensor;
      for (std::uint64_t step = 1; step <= 3; ++step) {
        tensor.gradient = normal(kCount, 10 + step);
        update_divided(*rule, tensor, cuts, step);
      }
      EXPECT_EQ(bits_of(tensor.weights), whole) << rule->name << " on " << ranks;
    }
  }
}

TEST(Parts, ElementwiseRulesMayBeCutAnywhere) {
  for (const optim::Rule* rule : optim::rules()) {
    if (rule->trust != nullptr) continue;
    Divided tensor;
    const std::vector<Range> cuts{{0, 1}, {1, 1}, {1, 70}, {70, 5000}, {5000, kCount}};
    for (std::uint64_t step = 1; step <= 3; ++step) {
      tensor.gradient = normal(kCount, 10 + step);
      update_divided(*rule, tensor, cuts, step);
    }
    EXPECT_EQ(bits_of(tensor.weights), updated(rule->name, {})) << rule->name;
  }
}

// The order of summation is part of every layer-wise result: blocks one after another, in f64.
TEST(Norms, AreSumsOfBlocksInTheirOrder) {
  const double third = 1.0 / 3;
  const std::vector<optim::Squares> blocks{{1e16, 1}, {1, 1e16}, {1, third}, {-1e16, 0}};
  const optim::Norms norms = optim::norms_of(blocks);
  EXPECT_EQ(norms.weights, 0) << "1e16 + 1 is 1e16 in f64, and so twice";
  EXPECT_EQ(norms.direction, std::sqrt(1e16 + third + 0)) << "1 is lost in 1e16";
  EXPECT_EQ(optim::blocks_of(0), 0U);
  EXPECT_EQ(optim::blocks_of(optim::kBlock), 1U);
  EXPECT_EQ(optim::blocks_of(optim::kBlock + 1), 2U);
}

}  // namespace
}  // namespace syncopate::test
