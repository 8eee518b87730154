// Every codec of the shelf loses nothing but what its feedback's law allows, under every exchange that serves it.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>

#include "base/random.hpp"
#include "compress/quantised/levels.hpp"
#include "ranks.hpp"
#include "sanitized.hpp"
#include "sync/bucket.hpp"
#include "sync/sample_codecs.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate {
namespace {

const std::vector<Gradient> kModel{{.name = "conv", .elements = 9600, .rows = 64},
                                   {.name = "bias", .elements = 64},
                                   {.name = "fc", .elements = 20000, .rows = 100}};
constexpr int kSteps = 12;

/// At most 0.005, which a threshold's default parameter is for.
float element(int rank, int step, std::size_t gradient, std::size_t i) {
  const base::CounterRandom random{static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(step), gradient};
  return 0.01F * static_cast<float>(random.uniform(2 * i) - 0.5) * static_cast<float>(random.uniform(2 * i + 1));
}

/// Weights of the model, some of them zero, for codecs that look at them. They outlive synchronizers that read them.
std::vector<Buffer> weights() {
  static std::vector<std::vector<float>> memory = [] {
    std::vector<std::vector<float>> all;
    const base::CounterRandom random{17};
    for (const Gradient& gradient : kModel)
      for (auto& values = all.emplace_back(gradient.elements); float& value : values)
        value = 1e-3F * static_cast<float>(random.below(5, static_cast<std::uint64_t>(&value - values.data())));
    return all;
  }();
  std::vector<Buffer> buffers;
  for (std::vector<float>& values : memory) buffers.emplace_back(std::span(values));
  return buffers;
}

SynchronizerOptions options_of(const compress::Codec& codec, const char* exchange = "allreduce") {
  return {.coding = {.codec = std::string(codec.name)}, .exchange = exchange, .weights = weights()};
}

void backward(Synchronizer& synchronizer, int rank, int step) {
  for (std::size_t gradient = kModel.size(); gradient-- > 0;) {
    const auto values = test::floats_of(synchronizer.gradient(gradient));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = element(rank, step, gradient, i);
    synchronizer.ready(gradient);
  }
}

using Vectors = std::vector<std::vector<double>>;  ///< by gradient

Vectors zeros() {
  Vectors vectors;
  for (const Gradient& gradient : kModel) vectors.emplace_back(gradient.elements);
  return vectors;
}

void add(Vectors& sums, const Synchronizer& synchronizer) {
  for (std::size_t gradient = 0; gradient < kModel.size(); ++gradient) {
    const auto values = test::floats_of(synchronizer.gradient(gradient));
    for (std::size_t i = 0; i < values.size(); ++i) sums[gradient][i] += values[i];
  }
}

std::vector<const compress::Codec*> codecs_with(const sync::Exchange& exchange,
                                                std::initializer_list<compress::FeedbackUse> uses) {
  std::vector<const compress::Codec*> found;
  for (const compress::Codec* codec : compress::codecs()) {
    const bool served = exchange.serves.includes(codec->combines) && (exchange.answers_everywhere || codec->one_round);
    const bool wanted = std::ranges::find(uses, codec->feedback) != uses.end();
    if (served && wanted) found.push_back(codec);
  }
  return found;
}

/// The part of a gradient's saved state that is its residual: floats behind the codec's own.
std::vector<float> residual_of(const SavedCodecState& saved, std::size_t gradient) {
  const std::vector<std::byte>& bytes = saved.gradients[gradient].second;
  std::vector<float> residual(kModel[gradient].elements);
  if (bytes.size() < residual.size() * sizeof(float)) return residual;  // it was not coded
  std::memcpy(residual.data(), bytes.data() + bytes.size() - residual.size() * sizeof(float),
              residual.size() * sizeof(float));
  return residual;
}

/// A gradient as its codec sees it under allreduce: for the key, on which parts depend.
compress::Tensor tensor_of(Group& group, std::size_t gradient) {
  const sync::Arena arena(group, kModel);
  const std::vector<compress::Settings> settings(kModel.size(), compress::settings_of("none"));
  const sync::RowShare all;
  return sync::whole_tensor({group, kModel, arena, settings, all, sync::Cut(kModel, all)}, gradient);
}

/// Adds what codecs that combine in parts keep of the averages that this rank has encoded again: floats before the
/// residual, for the elements of its part.
void add_owned(const SavedCodecState& saved, Group& group, std::size_t gradient, std::vector<double>& kept) {
  const std::vector<std::byte>& bytes = saved.gradients[gradient].second;
  if (bytes.empty()) return;  // it was not coded
  const compress::Tensor tensor = tensor_of(group, gradient);
  const Range part =
      compress::quantised::part_of(tensor, compress::quantised::kGroup, {.rank = group.rank(), .ranks = group.size()});
  ASSERT_EQ(bytes.size() / sizeof(float),
            tensor.values.count + compress::quantised::most_of(tensor, compress::quantised::kGroup, group.size()));
  for (std::size_t i = part.begin; i < part.end; ++i) {
    float value = 0;
    std::memcpy(&value, bytes.data() + (i - part.begin) * sizeof value, sizeof value);
    kept[i] += value;
  }
}

// sum over steps of (average of gradients) = sum over steps of what was combined + average of residuals + what owners
// of parts kept of averages.
TEST(Feedback, WhatIsCombinedAndWhatIsKeptAddUpToTheGradients) {
  for (const compress::Codec* codec : codecs_with(sync::exchange_named("allreduce"),
                                                  {compress::FeedbackUse::sound, compress::FeedbackUse::maskable})) {
    constexpr int kRanks = 3;
    std::mutex mutex;
    Vectors kept = zeros(), combined = zeros();
    test::on_groups(kRanks, [&](Group& group) {
      SynchronizerOptions options = options_of(*codec);
      options.policy = "wfbp";
      Synchronizer synchronizer(group, kModel, options);
      Vectors mine = zeros();
      for (int step = 0; step < kSteps; ++step) {
        backward(synchronizer, group.rank(), step);
        synchronizer.wait();
        add(mine, synchronizer);
      }
      const SavedCodecState saved = synchronizer.save();
      const std::lock_guard lock(mutex);
      if (group.rank() == 0) combined = mine;
      for (std::size_t gradient = 0; gradient < kModel.size(); ++gradient) {
        const auto residual = residual_of(saved, gradient);
        for (std::size_t i = 0; i < residual.size(); ++i) kept[gradient][i] += residual[i] / kRanks;
        if (codec->combines.scatter) add_owned(saved, group, gradient, kept[gradient]);
      }
    });
    for (std::size_t gradient = 0; gradient < kModel.size(); ++gradient)
      for (std::size_t i = 0; i < kModel[gradient].elements; ++i) {
        double exact = 0;
        for (int step = 0; step < kSteps; ++step)
          for (int rank = 0; rank < kRanks; ++rank) exact += element(rank, step, gradient, i) / double{kRanks};
        ASSERT_NEAR(combined[gradient][i] + kept[gradient][i], exact, 2e-8)
            << codec->name << ", " << kModel[gradient].name << "[" << i << "]";
      }
  }
}

// Over many steps with the same gradient the mean of what is combined approaches it: by feedback, or by chance.
TEST(EveryCodec, BringsTheSameGradientInTheLongRun) {
  constexpr int kLong = test::kSanitized ? 80 : 150;
  for (const char* exchange : {"hierarchical", "allreduce"}) {
    if (test::kSanitized && std::string_view(exchange) == "allreduce") continue;
    for (const compress::Codec* codec :
         codecs_with(sync::exchange_named(exchange),
                     {compress::FeedbackUse::unsound, compress::FeedbackUse::sound, compress::FeedbackUse::maskable}))
      test::on_groups(4,
                      [&](Group& group) {
                        Synchronizer synchronizer(group, kModel, options_of(*codec, exchange));
                        Vectors mean = zeros();
                        for (int step = 0; step < kLong; ++step) {
                          backward(synchronizer, group.rank(), 0);
                          synchronizer.wait();
                          add(mean, synchronizer);
                        }
                        double error = 0, norm = 0;
                        for (std::size_t gradient = 0; gradient < kModel.size(); ++gradient)
                          for (std::size_t i = 0; i < kModel[gradient].elements; ++i) {
                            double exact = 0;
                            for (int rank = 0; rank < 4; ++rank) exact += element(rank, 0, gradient, i) / 4.0;
                            error += std::pow(mean[gradient][i] / kLong - exact, 2);
                            norm += std::pow(exact, 2);
                          }
                        EXPECT_LT(std::sqrt(error / norm), 0.5) << codec->name << " under " << exchange;
                      },
                      {.ranks_per_host = 2});
  }
}

// Without an exchange every rank keeps its own: what is combined and what is kept add up to its gradient.
TEST(EveryCodec, TrainsEachRankAloneWithoutAnExchange) {
  for (const compress::Codec* codec : compress::codecs())
    test::on_groups(2, [&](Group& group) {
      Synchronizer synchronizer(group, kModel, options_of(*codec, "none"));
      backward(synchronizer, group.rank(), 0);
      synchronizer.wait();
      if (codec->feedback < compress::FeedbackUse::sound) return;
      const SavedCodecState saved = synchronizer.save();
      for (const std::size_t gradient : {0, 2}) {
        const auto combined = test::floats_of(synchronizer.gradient(gradient));
        const auto residual = residual_of(saved, gradient);
        for (std::size_t i = 0; i < residual.size(); ++i)
          ASSERT_NEAR(combined[i] + residual[i], element(group.rank(), 0, gradient, i), 1e-8)
              << codec->name << ", " << kModel[gradient].name << "[" << i << "]";
      }
    });
}

TEST(EveryCodec, EndsWithTheSameBitsOnEveryRankWhateverTravelsTogether) {
  for (const char* exchange : {"allreduce", "hierarchical"})
    for (const compress::Codec* codec : compress::codecs()) {
      std::mutex mutex;
      std::map<std::string, std::vector<float>> results;  // by policy and rank
      for (const char* policy : {"wfbp", "single"})
        test::on_groups(4,
                        [&](Group& group) {
                          SynchronizerOptions options = options_of(*codec, exchange);
                          options.policy = policy;
                          Synchronizer synchronizer(group, kModel, options);
                          std::vector<float> all;
                          for (int step = 0; step < 3; ++step) {
                            backward(synchronizer, group.rank(), step);
                            synchronizer.wait();
                            for (std::size_t gradient = 0; gradient < kModel.size(); ++gradient) {
                              const auto values = test::floats_of(synchronizer.gradient(gradient));
                              all.insert(all.end(), values.begin(), values.end());
                            }
                          }
                          const std::lock_guard lock(mutex);
                          results[policy + std::to_string(group.rank())] = std::move(all);
                        },
                        {.ranks_per_host = 2});
      // Dense sums depend on how a bucket is cut into the ranks' chunks. Coded gradients do not; of those whose values
      // are added up in an additive round, which elements travel does not, and their sums but for rounding.
      for (const char* policy : {"wfbp", "single"})
        for (const char* rank : {"1", "2", "3"})
          EXPECT_EQ(std::memcmp(results[std::string(policy) + "0"].data(), results[std::string(policy) + rank].data(),
                                results[std::string(policy) + "0"].size() * sizeof(float)),
                    0)
              << codec->name << " under " << exchange << ", policy " << policy << ", rank " << rank;
      if (codec->feedback == compress::FeedbackUse::pointless) continue;
      const auto &apart = results["wfbp0"], &together = results["single0"];
      for (std::size_t i = 0; i < apart.size(); ++i) {
        const std::size_t in_step = i % (9600 + 64 + 20000);
        if (in_step >= 9600 && in_step < 9664) continue;  // the bias is small, and dense
        ASSERT_EQ(apart[i] == 0, together[i] == 0) << codec->name << " under " << exchange << ", element " << i;
        ASSERT_NEAR(apart[i], together[i], codec->combines.additive ? 1e-8 : 0)
            << codec->name << " under " << exchange << ", element " << i;
      }
    }
}

}  // namespace
}  // namespace syncopate
