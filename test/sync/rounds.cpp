// Rounds: codecs that speak in every kind of round, through the sentence, on several ranks.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "ranks.hpp"
#include "sync/replica.hpp"
#include "sync/step.hpp"
#include "syncopate/error.hpp"

namespace syncopate {
namespace {

using namespace test;
using compress::Answer;
using compress::Combine;
using compress::Moment;
using compress::Round;
using compress::Settings;
using compress::Tensor;

constexpr int kRanks = 3;

std::span<float> floats_of(const Buffer& buffer) { return {static_cast<float*>(buffer.data), buffer.count}; }

bool takes_f32(DType dtype) { return dtype == DType::f32; }

std::size_t twice_the_floats(const Settings& /*settings*/, std::span<const Tensor> tensors) {
  return 2 * sizeof(float) * compress::elements_of(tensors) + 64;
}

/// Sends (index, value) of the elements that are not zero: packets of unequal lengths, gathered.
class Pairs final : public compress::Coder {
 public:
  Round begin(std::span<const Tensor> tensors, const Moment& moment, base::Bytes wire) override {
    tensors_ = tensors;
    ranks_ = moment.ranks;
    std::size_t used = 0;
    for (const Tensor& tensor : tensors_)
      for (std::uint32_t i = 0; i < tensor.values.count; ++i) {
        float value = floats_of(tensor.values)[i];
        if (value == 0) continue;
        const auto t = static_cast<std::uint16_t>(&tensor - tensors_.data());
        const std::uint32_t place = std::uint32_t{t} << 16 | i;
        std::memcpy(wire.data() + used, &place, 4);
        std::memcpy(wire.data() + used + 4, &value, 4);
        used += 8;
      }
    return {Combine::gather, Buffer(wire.data(), used, DType::u8)};
  }
  std::optional<Round> next(Answer answer) override {
    for (const Tensor& tensor : tensors_) std::ranges::fill(floats_of(tensor.values), 0.0F);
    for (const base::ConstBytes packet : answer)
      for (std::size_t at = 0; at < packet.size(); at += 8) {
        std::uint32_t place = 0;
        float value = 0;
        std::memcpy(&place, packet.data() + at, 4);
        std::memcpy(&value, packet.data() + at + 4, 4);
        floats_of(tensors_[place >> 16].values)[place & 0xffff] += value / static_cast<float>(ranks_);
      }
    return std::nullopt;
  }

 private:
  std::span<const Tensor> tensors_;
  int ranks_ = 1;
};

/// Sends to each rank its part, which it sums and gathers: two rounds, of known lengths.
class Scattering final : public compress::Coder {
 public:
  Round begin(std::span<const Tensor> tensors, const Moment& moment, base::Bytes wire) override {
    values_ = floats_of(tensors.front().values);
    moment_ = moment;
    wire_ = wire;
    lengths_.clear();
    for (int rank = 0; rank < moment.ranks; ++rank) lengths_.push_back(part(rank).size() * sizeof(float));
    std::memcpy(wire.data(), values_.data(), values_.size_bytes());
    return {Combine::scatter, Buffer(wire.data(), values_.size_bytes(), DType::u8), lengths_};
  }
  std::optional<Round> next(Answer answer) override {
    return std::exchange(scattered_, !scattered_) ? finish(answer) : gather(answer);
  }

 private:
  [[nodiscard]] Range part(int rank) const {
    return even_part(values_.size(), static_cast<std::size_t>(moment_.ranks), static_cast<std::size_t>(rank));
  }
  std::optional<Round> gather(Answer answer) {
    auto* sums = reinterpret_cast<float*>(wire_.data());
    const std::size_t count = part(moment_.rank).size();
    std::fill_n(sums, count, 0.0F);
    for (const base::ConstBytes packet : answer) {
      EXPECT_EQ(packet.size(), count * sizeof(float));
      for (std::size_t i = 0; i < count; ++i) {
        float value = 0;
        std::memcpy(&value, packet.data() + i * sizeof(float), sizeof value);
        sums[i] += value;
      }
    }
    for (std::size_t i = 0; i < count; ++i) sums[i] /= static_cast<float>(moment_.ranks);
    return Round{Combine::gather, Buffer(sums, count * sizeof(float), DType::u8), lengths_};
  }
  std::optional<Round> finish(Answer answer) {
    std::size_t at = 0;
    for (const base::ConstBytes packet : answer) {
      std::memcpy(values_.data() + at, packet.data(), packet.size());
      at += packet.size() / sizeof(float);
    }
    EXPECT_EQ(at, values_.size());
    return std::nullopt;
  }

  std::span<float> values_;
  Moment moment_;
  base::Bytes wire_;
  std::vector<std::size_t> lengths_;
  bool scattered_ = false;
};

/// Two additive rounds with arithmetic between: the average, then the average of twice the average.
class TwoSums final : public compress::Coder {
 public:
  Round begin(std::span<const Tensor> tensors, const Moment& /*moment*/, base::Bytes /*wire*/) override {
    values_ = tensors.front().values;
    return {Combine::additive, values_};
  }
  std::optional<Round> next(Answer /*answer*/) override {
    if (std::exchange(doubled_, !doubled_)) return std::nullopt;
    for (float& value : floats_of(values_)) value *= 2;
    return Round{Combine::additive, values_};
  }

 private:
  Buffer values_;
  bool doubled_ = false;
};

/// Sends what was kept and keeps the gradient: each step's result is the step's before.
class OneStepLate final : public compress::Coder {
 public:
  Round begin(std::span<const Tensor> tensors, const Moment& /*moment*/, base::Bytes /*wire*/) override {
    const Tensor& tensor = tensors.front();
    std::ranges::copy(tensor.values.bytes(), tensor.next.begin());
    std::ranges::copy(tensor.kept, tensor.values.bytes().begin());
    return {Combine::additive, tensor.values};
  }
  std::optional<Round> next(Answer /*answer*/) override { return std::nullopt; }
};

template <class Made>
std::unique_ptr<compress::Coder> make(const Settings& /*settings*/) {
  return std::make_unique<Made>();
}
std::size_t bytes_kept(const Settings& /*settings*/, const Tensor& tensor) { return tensor.values.bytes().size(); }

const compress::Codec kPairs{.name = "pairs",
                             .combines = {.gather = true},
                             .takes = takes_f32,
                             .wire_bytes = twice_the_floats,
                             .coder = make<Pairs>};
const compress::Codec kScattering{.name = "scattering",
                                  .combines = {.gather = true, .scatter = true},
                                  .one_round = false,
                                  .takes = takes_f32,
                                  .wire_bytes = twice_the_floats,
                                  .coder = make<Scattering>};
const compress::Codec kTwoSums{.name = "two_sums",
                               .combines = {.additive = true},
                               .one_round = false,
                               .takes = takes_f32,
                               .wire_bytes = twice_the_floats,
                               .coder = make<TwoSums>};
const compress::Codec kLate{.name = "late",
                            .combines = {.additive = true},
                            .takes = takes_f32,
                            .wire_bytes = twice_the_floats,
                            .coder = make<OneStepLate>,
                            .kept_bytes = bytes_kept};

/// All that a step needs, for a codec that stands on no shelf.
struct Bench {
  Bench(Group& of, const compress::Codec& with, std::vector<Gradient> of_model)
      : group(of), codec{&with, ""}, model(std::move(of_model)), exchange(sync::exchange_named("allreduce")) {}

  void step(const schedule::Bucket& bucket) {
    sync::step(buckets.of(bucket), context, [] { return 0.0; });
  }
  std::span<float> gradient(std::size_t i) { return floats_of(arena.gradient(i)); }

  Group& group;
  compress::Settings codec;
  std::vector<Gradient> model;
  const sync::Exchange& exchange;
  SynchronizerOptions options{};
  sync::Arena arena{group, model};
  sync::WeightUpdater updater{exchange, group, options, arena};
  sync::Share share = sync::share_of(exchange, group);
  sync::BucketInputs inputs{group, model, arena, codec, share};
  sync::CodecState state{codec, sync::part_tensors(inputs)};
  sync::AnswerMemory answers{};
  sync::StepContext context{exchange, group, options.algorithm, share, updater, state, answers};
  sync::Buckets buckets{inputs, updater};
};

TEST(Rounds, GatherPacketsOfUnequalLengths) {
  on_groups(kRanks, [](Group& group) {
    Bench bench(group, kPairs, {{"a", 40}, {"b", 30}});
    for (int step = 0; step < 3; ++step) {
      for (const std::size_t i : {0, 1}) std::ranges::fill(bench.gradient(i), 0.0F);
      for (int i = 0; i <= group.rank() * (step + 1); ++i) bench.gradient(1)[static_cast<std::size_t>(i)] = 3;
      if (group.rank() == 0) bench.gradient(0)[7] = 6;
      bench.step({0, 1});
      EXPECT_EQ(bench.gradient(0)[7], 2);
      EXPECT_EQ(bench.gradient(1)[0], 3);
      EXPECT_EQ(bench.gradient(1)[static_cast<std::size_t>(2 * (step + 1))], 1) << "rank 2 alone sent it";
      EXPECT_EQ(bench.gradient(1)[static_cast<std::size_t>(2 * (step + 1) + 1)], 0);
    }
  });
}

TEST(Rounds, DISABLED_ScatterPartsAndGatherTheirSums) {
  on_groups(kRanks, [](Group& group) {
    for (const std::size_t elements : {1U, 2U, 7U, 100U}) {
      Bench bench(group, kScattering, {{"a", elements}});
      for (int step = 0; step < 2; ++step) {
        for (std::size_t i = 0; i < elements; ++i)
          bench.gradient(0)[i] = static_cast<float>(i) + 3.0F * static_cast<float>(group.rank());
        bench.step({0, 0});
        for (std::size_t i = 0; i < elements; ++i) ASSERT_EQ(bench.gradient(0)[i], static_cast<float>(i) + 3) << i;
      }
    }
  });
}

TEST(Rounds, MayFollowEachOtherWithArithmeticBetween) {
  on_groups(kRanks, [](Group& group) {
    Bench bench(group, kTwoSums, {{"a", 50}});
    std::ranges::fill(bench.gradient(0), static_cast<float>(group.rank()));
    bench.step({0, 0});
    EXPECT_EQ(bench.gradient(0)[49], 2);
  });
}

TEST(Rounds, OfEachTypeAreTheirOwn) {
  on_groups(kRanks, [](Group& group) {
    Synchronizer synchronizer(group, {{"a", 5, DType::f32}, {"b", 6, DType::f64}, {"c", 7, DType::f32}},
                              {.policy = "single"});
    static_cast<float*>(synchronizer.gradient(2).data)[6] = static_cast<float>(group.rank());
    static_cast<double*>(synchronizer.gradient(1).data)[5] = group.rank();
    for (const std::size_t i : {2, 1, 0}) synchronizer.ready(i);
    synchronizer.wait();
    EXPECT_EQ(static_cast<float*>(synchronizer.gradient(2).data)[6], 1);
    EXPECT_EQ(static_cast<double*>(synchronizer.gradient(1).data)[5], 1);
    EXPECT_EQ(synchronizer.buckets().size(), 1U) << "one bucket holds both types";
  });
}

TEST(CodecState, CountsWhenAStepHasEndedAndSurvivesOtherBuckets) {
  on_groups(kRanks, [](Group& group) {
    Bench bench(group, kLate, {{"a", 4}, {"b", 4}});
    const auto fill = [&](float value) {
      for (const std::size_t i : {0, 1}) std::ranges::fill(bench.gradient(i), value);
    };
    fill(5);
    for (const std::size_t i : {0, 1}) bench.step({i, i});
    EXPECT_EQ(bench.gradient(0)[0], 0) << "nothing was kept before the first step";
    bench.state.commit();
    fill(7);
    for (const std::size_t i : {0, 1}) bench.step({i, i});  // a step that is not committed: it was aborted
    fill(8);
    for (const std::size_t i : {0, 1}) bench.step({i, i});
    EXPECT_EQ(bench.gradient(1)[3], 5) << "the aborted step left nothing";
    bench.state.commit();
    const SavedCodecState saved = bench.state.save("late", bench.model);
    Bench other(group, kLate, bench.model);
    other.state.restore(saved, "late", other.model);
    EXPECT_EQ(other.state.steps(), 2U);
    other.step({0, 0});
    EXPECT_EQ(other.gradient(0)[1], 8);
    EXPECT_THROW(other.state.restore(saved, "pairs", other.model), Misuse);
    Bench longer(group, kLate, {{"a", 4}, {"b", 5}});
    EXPECT_THROW(longer.state.restore(saved, "late", longer.model), Misuse);
  });
}

TEST(Settings, ParametersStandInTheName) {
  EXPECT_EQ(compress::settings_of("fp16").text(), "fp16");
  EXPECT_THROW(std::ignore = compress::settings_of("fp16:3"), Misuse);
  EXPECT_THROW(std::ignore = compress::settings_of("fp17"), Misuse);
}

TEST(Synchronizer, RefusesInItsConstructorWhatAStepCouldNotDo) {
  on_groups(1, [](Group& group) {
    const std::vector<Gradient> model{{"w", 8}}, wide{{"w", 8, DType::f64}}, whole{{"w", 8, DType::i32}};
    EXPECT_THROW(Synchronizer(group, wide, {.codec = "fp16"}), Misuse);
    EXPECT_THROW(Synchronizer(group, model, {.algorithm = "no_such"}), Misuse);
    EXPECT_THROW(Synchronizer(group, whole, {.clip_norm = 1}), Misuse);
    EXPECT_THROW(Synchronizer(group, {{"w", 8, DType::f32, 3}}, {}), Misuse);
    std::vector<float> weights(8);
    EXPECT_THROW(Synchronizer(group, model,
                              {.exchange = "reduce_broadcast",
                               .algorithm = "ring",
                               .weights = {std::span(weights)},
                               .update = [](std::size_t, std::size_t) {}}),
                 Misuse);
  });
}

TEST(Synchronizer, ComparesWhatDecidesTheResult) {
  const auto differ = [](const auto& change, const std::string& word) {
    auto groups = Group::threads(kRanks);
    const auto failures = outcomes(kRanks, [&](int rank) {
      SynchronizerOptions options;
      if (rank == 1) change(options);
      Synchronizer synchronizer(*groups[static_cast<std::size_t>(rank)], {{"w\nx", 8}}, options);
      synchronizer.ready(0);
      synchronizer.wait();
    });
    ASSERT_TRUE(failures[1]) << word;
    try {
      std::rethrow_exception(failures[1]);
    } catch (const Mismatch& mismatch) {
      EXPECT_NE(std::string(mismatch.what()).find(word), std::string::npos) << mismatch.what();
    }
    EXPECT_TRUE(failures[0] && failures[2]);
  };
  differ([](SynchronizerOptions& options) { options.clip_norm = 2; }, "clip_norm 2 on rank 1, clip_norm 0 on rank 0");
  differ([](SynchronizerOptions& options) { options.codec = "bf16"; }, "codec bf16 on rank 1, codec none on rank 0");
  differ([](SynchronizerOptions& options) { options.seed = 3; }, "seed 3 on rank 1, seed 0 on rank 0");
}

TEST(Synchronizer, WaitForAGradientBehindOneThatIsNotReadyIsRefused) {
  on_groups(1, [](Group& group) {
    Synchronizer synchronizer(group, {{"a", 8}, {"b", 8}}, {.policy = "wfbp"});
    synchronizer.ready(0);
    EXPECT_THROW(std::ignore = synchronizer.wait(0), Misuse) << "b's bucket leaves first";
  });
}

}  // namespace
}  // namespace syncopate
