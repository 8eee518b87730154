// The combiner: the bits of a synchronizer, on memory and buckets that change from step to step.
#include "syncopate/combiner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <semaphore>
#include <thread>

#include "ranks.hpp"
#include "sync/sample_codecs.hpp"
#include "syncopate/error.hpp"

namespace syncopate {
namespace {

const std::vector<Gradient> kForeignModel{
    {"conv", 600, DType::f32, 20}, {"scale", 7}, {"dense", 5000, DType::f32, 50}, {"bias", 1}, {"last", 128}};
constexpr int kCombinedSteps = 6;

float drawn(int rank, int step, std::size_t gradient, std::size_t i) {
  return static_cast<float>(((rank + 2) * (step + 3) + static_cast<int>(gradient)) *
                            (static_cast<int>(i * 37 % 101) - 50));
}

/// A framework's gradients: contiguous, in its own order, at its own address.
class Foreign {
 public:
  Foreign(std::vector<std::size_t> order, std::size_t gap) : order_(std::move(order)) {
    std::size_t at = 0;
    for (const std::size_t i : order_) {
      begin_[i] = at;
      at += kForeignModel[i].elements + gap;
    }
    memory_.resize(at);
  }
  std::span<float> of(std::size_t i) { return std::span(memory_).subspan(begin_[i], kForeignModel[i].elements); }
  void write(int rank, int step) {
    for (std::size_t i = 0; i < kForeignModel.size(); ++i)
      for (std::size_t k = 0; k < kForeignModel[i].elements; ++k) of(i)[k] = drawn(rank, step, i, k);
  }
  /// One step, in buckets of `together` gradients.
  void combine(Combiner& combiner, std::size_t together) {
    for (std::size_t begin = 0; begin < order_.size(); begin += together) {
      std::vector<PlacedGradient> bucket;
      for (std::size_t at = begin; at < std::min(begin + together, order_.size()); ++at)
        bucket.push_back({order_[at], of(order_[at])});
      combiner.combine(bucket);
    }
    combiner.end_step();
  }

 private:
  std::vector<std::size_t> order_;
  std::array<std::size_t, 5> begin_{};
  std::vector<float> memory_;
};

/// The averages of one step by a synchronizer, as rows of gradients.
std::vector<std::vector<float>> averaged(Synchronizer& synchronizer, int rank, int step) {
  std::vector<std::vector<float>> rows;
  for (std::size_t i = kForeignModel.size(); i-- > 0;) {
    const auto gradient = test::floats_of(synchronizer.gradient(i));
    for (std::size_t k = 0; k < gradient.size(); ++k) gradient[k] = drawn(rank, step, i, k);
    synchronizer.ready(i);
  }
  synchronizer.wait();
  for (std::size_t i = 0; i < kForeignModel.size(); ++i) {
    const auto gradient = test::floats_of(synchronizer.gradient(i));
    rows.emplace_back(gradient.begin(), gradient.end());
  }
  return rows;
}

CodingOptions coding(const std::string& codec) { return {.codec = codec, .dense_below = 64}; }

// With two ranks every order of adding gives the same bits, so that buckets of other gradients compare.
TEST(Combiner, HasTheBitsOfASynchronizerWhileMemoryAndBucketsChange) {
  for (const char* codec : {"none", "fp16", "topk:0.05", "low_rank:2", "int8", "mstopk:0.1"})
    test::on_groups(2, [&](Group& group) {
      Synchronizer synchronizer(group, kForeignModel, {.coding = coding(codec)});
      Combiner combiner(group, kForeignModel, {.coding = coding(codec)});
      Foreign dense({4, 3, 2, 1, 0}, 0), other({2, 0, 4, 1, 3}, 0), apart({2, 0, 4, 1, 3}, 5);
      const std::array<Foreign*, kCombinedSteps> memories{&dense, &other, &other, &apart, &dense, &other};
      for (int step = 0; step < kCombinedSteps; ++step) {
        const auto wanted = averaged(synchronizer, group.rank(), step);
        Foreign& memory = *memories[static_cast<std::size_t>(step)];
        memory.write(group.rank(), step);
        memory.combine(combiner, step < 2 ? 2 : 3);
        for (std::size_t i = 0; i < kForeignModel.size(); ++i)
          ASSERT_TRUE(std::ranges::equal(memory.of(i), wanted[i]))
              << codec << ", step " << step << ", " << kForeignModel[i].name;
      }
    });
}

/// One step with every bucket in another phase: a thread exchanges while this one encodes and decodes.
void combine_on_two_threads(Combiner& combiner, Foreign& memory) {
  std::counting_semaphore<5> encoded(0), exchanged(0);
  std::jthread exchanging([&] {
    for (std::size_t i = 0; i < kForeignModel.size(); ++i) {
      encoded.acquire();
      combiner.exchange();
      exchanged.release();
    }
  });
  for (std::size_t i = 0; i < kForeignModel.size(); ++i) {
    const PlacedGradient placed{i, memory.of(i)};
    combiner.encode(std::span(&placed, 1));
    encoded.release();
  }
  for (std::size_t i = 0; i < kForeignModel.size(); ++i) {
    exchanged.acquire();
    combiner.decode();
  }
  combiner.end_step();
}

TEST(Combiner, HasTheSameBitsWhenTwoThreadsShareThePhases) {
  for (const auto& [codec, exchange] :
       {std::pair{"topk:0.05", "allreduce"}, {"low_rank:2", "allreduce"}, {"fp16", "hierarchical"}})
    test::on_groups(2, [&](Group& group) {
      const CombinerOptions options{.coding = {.codec = codec, .dense_below = 64}, .exchange = exchange};
      Combiner one(group, kForeignModel, options), two(group, kForeignModel, options);
      Foreign memory({0, 1, 2, 3, 4}, 0), same({0, 1, 2, 3, 4}, 0);
      for (int step = 0; step < 3; ++step) {
        memory.write(group.rank(), step);
        memory.combine(one, 1);
        same.write(group.rank(), step);
        combine_on_two_threads(two, same);
        for (std::size_t i = 0; i < kForeignModel.size(); ++i)
          ASSERT_TRUE(std::ranges::equal(memory.of(i), same.of(i))) << codec << ", step " << step << ", gradient " << i;
      }
    });
}

TEST(Combiner, PhasesOfABucketComeInOrder) {
  std::vector<float> values(128);
  const PlacedGradient last{4, std::span(values)};
  const auto refused = [&](const std::function<void(Combiner&)>& use) {
    test::on_groups(1, [&](Group& group) {
      Combiner combiner(group, kForeignModel, {});
      combiner.encode(std::span(&last, 1));
      EXPECT_THROW(use(combiner), Misuse);
    });
  };
  refused([](Combiner& combiner) { combiner.decode(); });
  refused([](Combiner& combiner) { combiner.end_step(); });
  refused([](Combiner& combiner) {
    combiner.exchange();
    combiner.exchange();
  });
}

TEST(Combiner, GoesOnFromSavedState) {
  test::on_groups(2, [&](Group& group) {
    Combiner one(group, kForeignModel, {.coding = coding("topk:0.05")}),
        other(group, kForeignModel, {.coding = coding("topk:0.05")});
    Foreign memory({0, 1, 2, 3, 4}, 0), same({4, 2, 0, 1, 3}, 1);
    memory.write(group.rank(), 0);
    memory.combine(one, 5);
    other.restore(one.save());
    memory.write(group.rank(), 1);
    memory.combine(one, 5);
    same.write(group.rank(), 1);
    same.combine(other, 2);
    for (std::size_t i = 0; i < kForeignModel.size(); ++i) EXPECT_TRUE(std::ranges::equal(memory.of(i), same.of(i)));
  });
}

TEST(Combiner, KeepsTheStateOfGradientsThatAStepDoesNotHave) {
  test::on_groups(2, [&](Group& group) {
    Combiner combiner(group, kForeignModel, {.coding = coding("topk:0.05")});
    Foreign memory({0, 1, 2, 3, 4}, 0);
    for (int step = 0; step < 2; ++step) {
      memory.write(group.rank(), step);
      memory.combine(combiner, 5);
    }
    const SavedCodecState before = combiner.save();
    memory.write(group.rank(), 2);
    const PlacedGradient last{4, memory.of(4)};
    combiner.combine(std::span(&last, 1));
    combiner.end_step();
    const SavedCodecState after = combiner.save();
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(after.gradients[i], before.gradients[i]);
    EXPECT_NE(after.gradients[4], before.gradients[4]);
  });
}

TEST(Combiner, RefusesWhatItCannotDo) {
  test::on_groups(1, [](Group& group) {
    EXPECT_THROW(Combiner(group, kForeignModel, {.exchange = "reduce_broadcast"}), Misuse);
    EXPECT_THROW(Combiner(group, {}, {}), Misuse);
  });
  std::vector<float> values(128);
  const PlacedGradient last{4, std::span(values)}, longer{1, std::span(values).first(8)},
      shorter{1, std::span(values).first(6)}, none{5, std::span(values)};
  for (const PlacedGradient& second : {last, longer, shorter, none})
    test::on_groups(1, [&](Group& group) {
      Combiner combiner(group, kForeignModel, {});
      combiner.combine(std::span(&last, 1));
      EXPECT_THROW(combiner.combine(std::span(&second, 1)), Misuse);
      EXPECT_THROW(combiner.end_step(), Misuse);
    });
}

TEST(Combiner, EveryRankReadsWhyOneRankIsRefused) {
  const auto failures = test::outcomes_over("shm", 2, [](Group& group) {
    CombinerOptions options{.coding = coding("fp16")};
    if (group.rank() == 1) options.exchange = "reduce_broadcast";
    Combiner(group, kForeignModel, options);
  });
  for (const auto& failure : failures) {
    ASSERT_TRUE(failure);
    try {
      std::rethrow_exception(failure);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("a combiner ends with gradients"), std::string::npos) << error.what();
    }
  }
}

TEST(Combiner, RanksThatDifferAreNamed) {
  const auto failures = test::outcomes_over("shm", 2, [](Group& group) {
    Combiner combiner(group, kForeignModel, {.coding = coding(group.rank() == 0 ? "fp16" : "bf16")});
    Foreign memory({0, 1, 2, 3, 4}, 0);
    memory.combine(combiner, 5);
  });
  for (const auto& failure : failures) {
    ASSERT_TRUE(failure);
    try {
      std::rethrow_exception(failure);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("codec bf16 on rank 1"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace syncopate
