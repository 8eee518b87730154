// 16-bit gradients: every codec codes them in f32 and rounds their average once.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "base/random.hpp"
#include "kernel/cast.hpp"
#include "ranks.hpp"
#include "sync/sample_codecs.hpp"
#include "syncopate/combiner.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate::test::halves {
namespace {

constexpr DType kHalves[] = {DType::f16, DType::bf16};
constexpr std::size_t kConv = 0, kBias = 1, kDense = 2;
constexpr int kSteps = 3;

std::vector<Gradient> model_of(DType type) {
  return {{"conv", 9600, type, 64}, {"bias", 64, type}, {"dense", 20000, type, 100}};
}

/// Memory of elements of any type up to f64.
using Memory = std::vector<std::byte>;

Memory cast(DType from, DType to, base::ConstBytes values) {
  Memory memory(values.size() / size_of(from) * size_of(to));
  kernel::cast({from, to}, values.data(), memory.data(), values.size() / size_of(from));
  return memory;
}

/// Values that both 16-bit types have, in f32.
Memory drawn(int rank, int step, std::size_t gradient, std::size_t elements) {
  const base::CounterRandom random{static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(step), gradient};
  std::vector<float> values(elements);
  for (std::size_t i = 0; i < elements; ++i)
    values[i] = 0.01F * static_cast<float>(random.uniform(2 * i) - 0.5) * static_cast<float>(random.uniform(2 * i + 1));
  Memory memory(elements * sizeof(float));
  std::memcpy(memory.data(), values.data(), memory.size());
  for (const DType half : kHalves) memory = cast(half, DType::f32, cast(DType::f32, half, memory));
  return memory;
}

/// The averages of a step, of each gradient in its type.
std::vector<Memory> averages_of(Synchronizer& synchronizer, const std::vector<Gradient>& model, int rank, int step) {
  for (std::size_t i = model.size(); i-- > 0;) {
    const Memory values = drawn(rank, step, i, model[i].elements);
    std::ranges::copy(cast(DType::f32, model[i].dtype, values), synchronizer.gradient(i).bytes().begin());
    synchronizer.ready(i);
  }
  synchronizer.wait();
  std::vector<Memory> averages;
  for (std::size_t i = 0; i < model.size(); ++i) {
    const auto bytes = synchronizer.gradient(i).bytes();
    averages.emplace_back(bytes.begin(), bytes.end());
  }
  return averages;
}

/// Weights of this model, some of them zero, in its types.
struct Weights {
  explicit Weights(const std::vector<Gradient>& model) {
    for (const Gradient& gradient : model) {
      std::vector<float> values(gradient.elements);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.0009765625F * static_cast<float>(i * 7 % 5);
      memory.push_back(cast(DType::f32, gradient.dtype, std::as_bytes(std::span(values))));
      buffers.emplace_back(memory.back().data(), gradient.elements, gradient.dtype);
    }
  }
  std::vector<Memory> memory;
  std::vector<Buffer> buffers;
};

/// `lossless` sends 16-bit gradients as they are: f32 ones compare if they are rounded to the same type.
std::string text_of(const compress::Codec& codec, DType half) {
  if (codec.name != "lossless") return std::string(codec.name);
  return half == DType::f16 ? "lossless:fp16" : "lossless:bf16";
}

/// Two synchronizers in one group with equal values: one in 16 bits, one in f32.
struct Twins {
  Twins(Group& group, DType type, const SynchronizerOptions& options)
      : half(type),
        halves(model_of(type)),
        floats(model_of(DType::f32)),
        of_halves(group, halves, with(options, half_weights)),
        of_floats(group, floats, with(options, float_weights)),
        rank(group.rank()) {}

  static SynchronizerOptions with(SynchronizerOptions options, const Weights& weights) {
    options.weights = weights.buffers;
    return options;
  }
  void step(int number) {
    in_halves = averages_of(of_halves, halves, rank, number);
    in_floats = averages_of(of_floats, floats, rank, number);
  }
  [[nodiscard]] bool agree_on(std::size_t gradient) const {
    return in_halves[gradient] == cast(DType::f32, half, in_floats[gradient]);
  }

  DType half;
  std::vector<Gradient> halves, floats;
  Weights half_weights{halves}, float_weights{floats};
  Synchronizer of_halves, of_floats;
  int rank;
  std::vector<Memory> in_halves{}, in_floats{};
};

void expect_conformance(Group& group, DType half, const SynchronizerOptions& options) {
  Twins twins(group, half, options);
  for (int step = 0; step < kSteps; ++step) {
    twins.step(step);
    for (const std::size_t gradient : {kConv, kDense})
      ASSERT_TRUE(twins.agree_on(gradient)) << options.coding.codec << " under " << options.exchange << " on "
                                            << name_of(half) << ", step " << step << ", gradient " << gradient;
  }
  const SavedCodecState saved = twins.of_halves.save(), expected = twins.of_floats.save();
  EXPECT_EQ(saved.gradients, expected.gradients) << options.coding.codec << " keeps its state in f32";
}

// Also on 1 rank, where nothing is averaged and what is coded is rounded all the same.
TEST(HalfGradients, BecomeTheRoundedAveragesOfEqualFloats) {
  for (const DType half : kHalves)
    for (const compress::Codec* codec : compress::codecs()) {
      if (codec->name == "none") continue;
      for (const int ranks : {1, 3})
        test::on_groups(ranks, [&](Group& group) {
          expect_conformance(group, half, {.policy = "wfbp", .coding = {.codec = text_of(*codec, half)}});
        });
    }
}

TEST(HalfGradients, AreRoundedOnceWhereHostsNarrowThemFirst) {
  for (const DType half : kHalves)
    for (const char* codec : {"topk:0.05", "low_rank:2", "int8", "importance", "gtopk:0.05"})
      for (const int ranks : {4, 5})  // the fifth has no rows
        test::on_groups(ranks,
                        [&](Group& group) {
                          expect_conformance(
                              group, half, {.policy = "wfbp", .coding = {.codec = codec}, .exchange = "hierarchical"});
                        },
                        {.ranks_per_host = 2});
}

TEST(HalfGradients, HaveTheSameBitsOnEveryRank) {
  for (const DType half : kHalves)
    for (const compress::Codec* codec : compress::codecs()) {
      std::mutex mutex;
      std::map<int, std::vector<Memory>> by_rank;
      test::on_groups(3, [&](Group& group) {
        const std::vector<Gradient> model = model_of(half);
        const Weights weights(model);
        Synchronizer synchronizer(group, model,
                                  {.coding = {.codec = text_of(*codec, half)}, .weights = weights.buffers});
        std::vector<Memory> averages;
        for (int step = 0; step < kSteps; ++step) averages = averages_of(synchronizer, model, group.rank(), step);
        const std::lock_guard lock(mutex);
        by_rank[group.rank()] = std::move(averages);
      });
      EXPECT_EQ(by_rank[1], by_rank[0]) << codec->name << " on " << name_of(half);
      EXPECT_EQ(by_rank[2], by_rank[0]) << codec->name << " on " << name_of(half);
    }
}

// Those that are too small to be coded keep the bits of codec none.
TEST(HalfGradients, BelowTheLimitAreSentAsTheyAre) {
  for (const DType half : kHalves)
    test::on_groups(3, [&](Group& group) {
      const std::vector<Gradient> model = model_of(half);
      Synchronizer plain(group, model, {.policy = "wfbp"}),
          coded(group, model, {.policy = "wfbp", .coding = {.codec = "topk:0.1"}});
      const auto expected = averages_of(plain, model, group.rank(), 0);
      const auto found = averages_of(coded, model, group.rank(), 0);
      EXPECT_EQ(found[kBias], expected[kBias]);
      EXPECT_NE(found[kDense], expected[kDense]);
    });
}

// Also where momentum is added to gradients that are sent dense: u' = fl(fl(m u) + g) of an average in f32.
TEST(HalfGradients, GetMomentumLocalClippingAndWarmupInFloats) {
  const FeedbackOptions momentum{.kind = FeedbackKind::momentum, .momentum = 0.75, .nesterov = true};
  const FeedbackOptions residual{
      .kind = FeedbackKind::residual, .clip_norm = 0.05, .warmup_density = 0.64, .warmup_steps = 2};
  for (const DType half : kHalves)
    for (const FeedbackOptions& feedback : {momentum, residual})
      test::on_groups(3, [&](Group& group) {
        Twins twins(group, half, {.policy = "wfbp", .coding = {.codec = "topk:0.05", .feedback = feedback}});
        for (int step = 0; step < 5; ++step) {
          twins.step(step);
          ASSERT_TRUE(twins.agree_on(kConv) && twins.agree_on(kDense)) << name_of(feedback.kind) << ", step " << step;
          ASSERT_TRUE(feedback.kind == FeedbackKind::residual || twins.agree_on(kBias)) << step;
        }
        EXPECT_EQ(twins.of_halves.save().gradients, twins.of_floats.save().gradients) << name_of(feedback.kind);
      });
}

// r' = fl(fl(g + r) - sent), where a single rank sends fl(g + r) or nothing: no bit of it is lost to 16 bits.
TEST(HalfGradients, LeaveAnExactResidual) {
  for (const DType half : kHalves)
    test::on_groups(1, [&](Group& group) {
      const std::vector<Gradient> model = model_of(half);
      Synchronizer synchronizer(group, model, {.coding = {.codec = "topk:0.05"}});
      std::vector<float> residual(model[kDense].elements);
      for (int step = 0; step < 6; ++step) {
        const Memory average = averages_of(synchronizer, model, 0, step)[kDense];
        Memory values = drawn(0, step, kDense, residual.size());
        const Memory kept = synchronizer.save().gradients[kDense].second;
        ASSERT_EQ(kept.size(), values.size());
        std::size_t sent = 0;
        for (std::size_t i = 0; i < residual.size(); ++i) {
          float gradient = 0, left = 0;
          std::memcpy(&gradient, values.data() + i * sizeof gradient, sizeof gradient);
          std::memcpy(&left, kept.data() + i * sizeof left, sizeof left);
          const float whole = gradient + residual[i];
          const float out = left == 0 ? whole : 0;
          ASSERT_TRUE(left == 0 || left == whole) << step << ", element " << i;
          const Memory rounded = cast(DType::f32, half, std::as_bytes(std::span(&out, 1)));
          ASSERT_EQ(std::memcmp(rounded.data(), average.data() + 2 * i, 2), 0) << step << ", element " << i;
          sent += left == 0 && whole != 0 ? 1U : 0U;
          residual[i] = left;
        }
        EXPECT_EQ(sent, residual.size() / 20);
      }
    });
}

TEST(HalfGradients, ShareASynchronizerWithOtherTypes) {
  test::on_groups(3, [&](Group& group) {
    std::vector<Gradient> mixed = model_of(DType::f32), floats = mixed;
    for (std::vector<Gradient>* const model : {&mixed, &floats}) {
      model->push_back({"wide", 100, DType::f64, 0, "none"});
      model->push_back({"last", 12000, DType::f32, 60});
    }
    mixed[kConv].dtype = DType::bf16;
    mixed[4].dtype = DType::f16;
    for (const char* codec : {"topk:0.05", "low_rank:2", "int8"}) {
      const SynchronizerOptions options{.policy = "single", .coding = {.codec = codec}};
      Synchronizer of_mixed(group, mixed, options), of_floats(group, floats, options);
      for (int step = 0; step < kSteps; ++step) {
        const auto found = averages_of(of_mixed, mixed, group.rank(), step);
        const auto expected = averages_of(of_floats, floats, group.rank(), step);
        for (const std::size_t i : {kConv, kDense, std::size_t{3}, std::size_t{4}}) {
          const DType type = mixed[i].dtype;
          ASSERT_EQ(found[i], type == DType::f64 ? expected[i] : cast(DType::f32, type, expected[i]))
              << codec << ", step " << step << ", " << mixed[i].name;
        }
      }
    }
  });
}

TEST(HalfGradients, GoOnFromSavedState) {
  test::on_groups(2, [&](Group& group) {
    const std::vector<Gradient> model = model_of(DType::bf16);
    const SynchronizerOptions options{.coding = {.codec = "topk:0.02"}};
    Synchronizer first(group, model, options), second(group, model, options);
    for (int step = 0; step < kSteps; ++step) static_cast<void>(averages_of(first, model, group.rank(), step));
    second.restore(first.save());
    EXPECT_EQ(averages_of(first, model, group.rank(), kSteps), averages_of(second, model, group.rank(), kSteps));
  });
}

TEST(HalfGradients, MayMoveBetweenACombinersSteps) {
  test::on_groups(2, [&](Group& group) {
    const std::vector<Gradient> model{{"dense", 20000, DType::bf16, 100}};
    const CodingOptions coding{.codec = "topk:0.02"};
    Synchronizer synchronizer(group, model, {.coding = coding});
    Combiner combiner(group, model, {.coding = coding});
    std::vector<Memory> places(2, Memory(40000));
    for (int step = 0; step < 4; ++step) {
      Memory& place = places[static_cast<std::size_t>(step) % 2];
      place = cast(DType::f32, DType::bf16, drawn(group.rank(), step, 0, 20000));
      const PlacedGradient placed{0, Buffer(place.data(), 20000, DType::bf16)};
      combiner.combine(std::span(&placed, 1));
      combiner.end_step();
      EXPECT_EQ(place, averages_of(synchronizer, model, group.rank(), step).front()) << step;
    }
  });
}

// A payload has the bytes of f32 gradients: twice as many per byte of a 16-bit gradient.
TEST(HalfGradients, HaveTheLawOfTheirPayloads) {
  Cluster cluster{.ranks = 4, .ranks_per_host = 2};
  cluster.codecs = {{.codec = "topk:0.01", .encode_s_per_byte = 1e-9, .decode_s_per_byte = 1e-10}};
  for (const char* exchange : {"allreduce", "hierarchical"})
    for (const DType half : kHalves) {
      const SynchronizerOptions options{.coding = {.codec = "topk:0.01"}, .exchange = exchange};
      const std::vector<Gradient> of_halves{{"w", 1000000, half, 1000}}, of_floats{{"w", 1000000, DType::f32, 1000}};
      const ExchangeLaw law = exchange_law(of_halves, options, cluster);
      const ExchangeLaw of_f32 = exchange_law(of_floats, options, cluster);
      ASSERT_EQ(law.legs.size(), of_f32.legs.size());
      for (std::size_t leg = 0; leg < law.legs.size(); ++leg)
        EXPECT_DOUBLE_EQ(law.legs[leg].share, 2 * of_f32.legs[leg].share) << exchange << ", leg " << leg;
      EXPECT_DOUBLE_EQ(law.coding_s_per_byte, 2 * of_f32.coding_s_per_byte);
    }
  const std::vector<Gradient> of_f16{{"w", 1000000, DType::f16}};
  const ExchangeLaw as_it_is = exchange_law(of_f16, {.coding = {.codec = "fp16"}}, cluster);
  ASSERT_EQ(as_it_is.legs.size(), 1U);
  EXPECT_EQ(as_it_is.legs.front().share, 1);
}

}  // namespace
}  // namespace syncopate::test::halves
