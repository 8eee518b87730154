// Optimizers that share their work: ranks that sum the norms of their shards end with the bits of one that sums all.
#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include "optim/drawn.hpp"
#include "optim/norms.hpp"
#include "syncopate/error.hpp"

namespace syncopate::test {
namespace {

constexpr int kRanks = 3;
const std::vector<std::size_t> kSizes{9 * optim::kBlock + 17, 40, 2 * optim::kBlock, 5000, 70 * optim::kBlock};

/// Memory through which the ranks of a test, which are threads, gather.
struct Meeting {
  std::barrier<> all{kRanks};
  std::array<std::span<double>, kRanks> values;
  std::atomic<int> calls{0};

  void gather(int rank, std::span<double> mine, std::span<const std::size_t> counts) {
    ++calls;
    values[static_cast<std::size_t>(rank)] = mine;
    all.arrive_and_wait();
    std::size_t at = 0;
    for (std::size_t other = 0; other < kRanks; at += counts[other++])
      if (static_cast<int>(other) != rank)
        std::copy_n(values[other].begin() + static_cast<std::ptrdiff_t>(at), counts[other],
                    mine.begin() + static_cast<std::ptrdiff_t>(at));
    all.arrive_and_wait();
  }
};

/// The weights of a model and an optimizer over them; the second tensor is spared.
struct Model {
  explicit Model(const OptimizerOptions& options) {
    for (std::size_t i = 0; i < kSizes.size(); ++i) weights.push_back(normal(kSizes[i], 100 + i));
    std::vector<WeightTensor> tensors;
    for (std::size_t i = 0; i < kSizes.size(); ++i)
      tensors.push_back({std::to_string(i), std::span<float>(weights[i]), i == 1});
    optimizer = std::make_unique<Optimizer>(std::move(tensors), options);
  }

  /// Three steps, each in two calls; `mine` returns this rank's part of a gradient.
  template <class Mine>
  void train(const Mine& mine) {
    for (std::uint64_t step = 1; step <= 3; ++step) {
      std::vector<std::vector<float>> gradients;
      for (std::size_t i = 0; i < kSizes.size(); ++i) gradients.push_back(mine(i, normal(kSizes[i], 10 * step + i)));
      std::vector<std::span<float>> spans(gradients.begin(), gradients.end());
      optimizer->update(3, std::span(spans).subspan(3), {.rate = 0.1, .step = step});
      optimizer->update(0, std::span(spans).first(3), {.rate = 0.1, .step = step});
    }
  }

  std::vector<std::vector<float>> weights;
  std::unique_ptr<Optimizer> optimizer;
};

std::vector<float> all_of(std::size_t /*tensor*/, std::vector<float> gradient) { return gradient; }

template <class Body>
void on_ranks(const Body& body) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < kRanks; ++rank) threads.emplace_back([&body, rank] { body(rank); });
}

SharedUpdate work_of(Meeting& meeting, int rank, bool own_only) {
  return {.shards = Shards(kSizes, kRanks),
          .rank = rank,
          .own_shards_only = own_only,
          .gather = [&meeting, rank](std::span<double> values, std::span<const std::size_t> counts) {
            meeting.gather(rank, values, counts);
          }};
}

TEST(SharedNorms, GiveEveryRankTheBitsOfOneThatSumsAll) {
  for (const optim::Rule* rule : optim::rules()) {
    Model alone({.rule = std::string(rule->name)});
    alone.train(all_of);
    Meeting meeting;
    on_ranks([&](int rank) {
      Model shared({.rule = std::string(rule->name), .shared = work_of(meeting, rank, false)});
      shared.train(all_of);
      for (std::size_t i = 0; i < kSizes.size(); ++i)
        EXPECT_EQ(bits_of(shared.weights[i]), bits_of(alone.weights[i])) << rule->name << " tensor " << i;
    });
    EXPECT_EQ(meeting.calls, rule->trust != nullptr ? 3 * 2 * kRanks : 0) << "one gather per call of a layer-wise rule";
  }
}

TEST(SharedNorms, ARankOfShardsUpdatesThemAloneAndKeepsTheirStateAlone) {
  for (const optim::Rule* rule : optim::rules()) {
    Model alone({.rule = std::string(rule->name)}), fresh({.rule = std::string(rule->name)});
    alone.train(all_of);
    Meeting meeting;
    on_ranks([&](int rank) {
      const SharedUpdate work = work_of(meeting, rank, true);
      Model shared({.rule = std::string(rule->name), .shared = work});
      shared.train([&](std::size_t i, std::vector<float> gradient) {
        const Range part = work.shards.of(i, rank);  // elsewhere a gradient may hold anything
        for (std::size_t at = 0; at < gradient.size(); ++at)
          if (at < part.begin || at >= part.end) gradient[at] = std::numeric_limits<float>::quiet_NaN();
        return gradient;
      });
      for (std::size_t i = 0; i < kSizes.size(); ++i) {
        std::vector<float> expected = fresh.weights[i];
        const Range part = work.shards.of(i, rank);
        std::copy_n(alone.weights[i].begin() + static_cast<std::ptrdiff_t>(part.begin), part.size(),
                    expected.begin() + static_cast<std::ptrdiff_t>(part.begin));
        EXPECT_EQ(bits_of(shared.weights[i]), bits_of(expected)) << rule->name << " tensor " << i;
      }
      for (const OptimizerState& state : shared.optimizer->state())
        EXPECT_EQ(state.values.size(), work.shards.elements_of_rank(rank));
    });
  }
}

TEST(SharedNorms, ThatDoNotFitAreRefused) {
  Meeting meeting;
  const std::vector<std::size_t> others{1, 2};
  SharedUpdate foreign = work_of(meeting, 0, false), mute = foreign, nobody = foreign;
  foreign.shards = Shards(others, kRanks);
  mute.gather = nullptr;
  nobody.rank = kRanks;
  for (const SharedUpdate& work : {foreign, mute, nobody})
    EXPECT_THROW(Model({.rule = "lars", .shared = work}), Misuse);
  EXPECT_NO_THROW(Model({.rule = "adam", .shared = mute}));
}

}  // namespace
}  // namespace syncopate::test
