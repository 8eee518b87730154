// The combiner: the bits of a synchronizer, on memory and buckets that change from step to step.
#include "syncopate/combiner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <semaphore>
#include <stdexcept>

#include "ranks.hpp"
#include "sync/sample_codecs.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

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

/// A step of one gradient in each bucket, which are all under way at the same time.
void start_step(Combiner& combiner, Foreign& memory) {
  for (std::size_t i = 0; i < kForeignModel.size(); ++i)
    combiner.start({{i, memory.of(i)}}, {.ends_step = i + 1 == kForeignModel.size()});
}

TEST(Combiner, HasTheSameBitsWhenBucketsAreStarted) {
  for (const auto& [codec, exchange] : {std::pair{"none", "allreduce"},
                                        {"topk:0.05", "allreduce"},
                                        {"low_rank:2", "allreduce"},
                                        {"fp16", "hierarchical"}})
    test::on_groups(2, [&](Group& group) {
      const CombinerOptions options{.coding = {.codec = codec, .dense_below = 64}, .exchange = exchange};
      auto own = group.split(0, group.rank());
      Combiner one(group, kForeignModel, options), two(*own, kForeignModel, options);
      std::vector<Foreign> memories(3, Foreign({0, 1, 2, 3, 4}, 0));
      for (int step = 0; step < 3; ++step) {
        Foreign& same = memories[static_cast<std::size_t>(step)];
        same.write(group.rank(), step);
        start_step(two, same);  // while the steps before are under way
      }
      two.wait();
      for (int step = 0; step < 3; ++step) {
        Foreign memory({0, 1, 2, 3, 4}, 0);
        memory.write(group.rank(), step);
        memory.combine(one, 1);
        for (std::size_t i = 0; i < kForeignModel.size(); ++i)
          ASSERT_TRUE(std::ranges::equal(memory.of(i), memories[static_cast<std::size_t>(step)].of(i)))
              << codec << ", step " << step << ", gradient " << i;
      }
    });
}

/// Buckets of one gradient each, on one rank: what their calls saw, in order.
class Started {
 public:
  explicit Started(Combiner& combiner) : combiner_(combiner) { memory_.write(0, 0); }
  void start(std::size_t i, std::function<void()> arrive = {}, std::function<void()> then = {}) {
    combiner_.start({{i, memory_.of(i)}}, {.arrive = std::move(arrive), .ended = [this, i, then](const auto& bucket) {
                                             ended_.push_back(i);
                                             errors_.push_back(bucket.error);
                                             if (then) then();
                                           }});
  }
  Foreign& memory() { return memory_; }
  /// After `wait`.
  [[nodiscard]] const std::vector<std::size_t>& ended() const { return ended_; }
  [[nodiscard]] const std::vector<std::exception_ptr>& errors() const { return errors_; }

 private:
  Combiner& combiner_;
  Foreign memory_{{0, 1, 2, 3, 4}, 0};
  std::vector<std::size_t> ended_;
  std::vector<std::exception_ptr> errors_;
};

/// Topk is encoded on another thread than exchanged where there are two processors, and none is not.
void with_combiners(const std::function<void(Combiner&)>& body) {
  for (const char* codec : {"none", "topk:0.05"})
    test::on_groups(1, [&](Group& group) {
      Combiner combiner(group, kForeignModel, {.coding = coding(codec)});
      body(combiner);
    });
}

TEST(Combiner, BucketsEndInTheOrderInWhichTheyWereStarted) {
  with_combiners([](Combiner& combiner) {
    Started started(combiner);
    for (const std::size_t i : {3, 0, 4, 1, 2}) started.start(i);
    combiner.wait();
    EXPECT_EQ(started.ended(), (std::vector<std::size_t>{3, 0, 4, 1, 2}));
    for (const auto& error : started.errors()) EXPECT_FALSE(error);
    combiner.end_step();
  });
}

TEST(Combiner, PhasesOfABucketFollowEachOther) {
  with_combiners([](Combiner& combiner) {
    std::vector<CombinedBucket> ended;
    const BucketCalls calls{.ended = [&](const CombinedBucket& bucket) { ended.push_back(bucket); }};
    Foreign memory({0, 1, 2, 3, 4}, 0);
    memory.write(0, 0);
    combiner.start({{2, memory.of(2)}}, calls);
    combiner.start({}, calls);
    combiner.wait();
    ASSERT_EQ(ended.size(), 2U);
    EXPECT_TRUE(ended[1].phases.empty());
    double before_s = 0;
    std::string names;
    for (const auto& [name, begin_s, end_s] : ended[0].phases) {
      EXPECT_LE(before_s, begin_s);
      EXPECT_LE(begin_s, end_s);
      before_s = end_s;
      names += name;
    }
    EXPECT_TRUE(names == "exchange" || names == "encodeexchangedecode") << names;
  });
}

TEST(Combiner, NothingReadsGradientsBeforeTheyArrive) {
  test::on_groups(2, [](Group& group) {
    Combiner combiner(group, kForeignModel, {});
    std::vector<float> values(128);
    std::binary_semaphore has_started(0);
    const auto arrive = [&] {
      has_started.acquire();
      std::ranges::fill(values, static_cast<float>(group.rank()));
    };
    combiner.start({{4, std::span(values)}}, {.arrive = arrive});
    has_started.release();
    combiner.wait();
    EXPECT_EQ(values, std::vector<float>(128, 0.5F));
  });
}

TEST(Combiner, AfterAnErrorAllThatFollowsEndsWithIt) {
  with_combiners([](Combiner& combiner) {
    Started started(combiner);
    bool has_arrived = false;
    started.start(0);
    combiner.wait();
    started.start(1, [] { throw std::runtime_error("the copy is lost"); });
    started.start(2, [&] { has_arrived = true; });
    combiner.wait();
    started.start(3);
    combiner.wait();
    EXPECT_EQ(started.ended(), (std::vector<std::size_t>{0, 1, 2, 3}));
    std::vector<std::string> texts;
    for (const auto& error : started.errors()) texts.push_back(test::thrown<std::exception>(error));
    EXPECT_EQ(texts,
              (std::vector<std::string>{"no error", "the copy is lost", "the copy is lost", "the copy is lost"}));
    EXPECT_FALSE(has_arrived);
    EXPECT_THROW(combiner.end_step(), Misuse);
  });
}

TEST(Combiner, WhatACallThrowsIsAnErrorOfTheNextBuckets) {
  with_combiners([](Combiner& combiner) {
    Started started(combiner);
    started.start(0, {}, [] { throw std::runtime_error("the callback fails"); });
    combiner.wait();
    started.start(1);
    combiner.wait();
    ASSERT_EQ(started.errors().size(), 2U);
    EXPECT_FALSE(started.errors()[0]);
    EXPECT_EQ(test::thrown<std::exception>(started.errors()[1]), "the callback fails");
  });
}

TEST(Combiner, OtherRanksLearnOfAnErrorInACall) {
  std::binary_semaphore has_rank_0(0);
  test::on_groups(2, [&](Group& group) {
    Combiner combiner(group, kForeignModel, {.coding = coding("topk:0.05")});
    if (group.rank() == 0) has_rank_0.release();
    Foreign memory({0, 1, 2, 3, 4}, 0);
    memory.write(group.rank(), 0);
    std::string text;
    const auto arrive = [&] {
      if (group.rank() == 0) return;
      has_rank_0.acquire();
      throw std::runtime_error("the copy is lost");
    };
    combiner.start({{2, memory.of(2)}}, {.arrive = arrive, .ended = [&](const auto& bucket) {
                                           text = test::thrown<std::exception>(bucket.error);
                                         }});
    combiner.wait();
    EXPECT_NE(text.find("the copy is lost"), std::string::npos) << text;
  });
}

TEST(Combiner, EndsBucketsThatAreUnderWayWhenItIsDestroyed) {
  test::on_groups(2, [](Group& group) {
    Foreign memory({0, 1, 2, 3, 4}, 0), wanted({0, 1, 2, 3, 4}, 0);
    const CombinerOptions options{.coding = coding("topk:0.05")};
    memory.write(group.rank(), 0);
    wanted.write(group.rank(), 0);
    std::size_t ended = 0;
    {
      Combiner combiner(group, kForeignModel, options);
      std::binary_semaphore has_started(0);
      for (std::size_t i = 0; i < kForeignModel.size(); ++i)
        combiner.start({{i, memory.of(i)}}, {.arrive =
                                                 [&, i] {
                                                   if (i == 0) has_started.acquire();
                                                 },
                                             .ended = [&](const auto& bucket) { ended += bucket.error ? 0 : 1; }});
      has_started.release();
    }
    EXPECT_EQ(ended, kForeignModel.size());
    Combiner other(group, kForeignModel, options);
    wanted.combine(other, 1);
    for (std::size_t i = 0; i < kForeignModel.size(); ++i)
      EXPECT_TRUE(std::ranges::equal(memory.of(i), wanted.of(i))) << i;
  });
}

TEST(Combiner, CallsMayStartBucketsAndNothingElse) {
  with_combiners([](Combiner& combiner) {
    Started started(combiner);
    bool is_refused = false, is_own = false;
    started.start(0, {}, [&] {
      is_own = combiner.is_own_thread();
      try {
        combiner.end_step();
      } catch (const Misuse&) {
        is_refused = true;
      }
      started.start(1);
    });
    combiner.wait();
    EXPECT_TRUE(is_refused && is_own && !combiner.is_own_thread());
    EXPECT_EQ(started.ended(), (std::vector<std::size_t>{0, 1}));
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
  for (const auto& failure : failures) test::expect_thrown(failure, {"a combiner ends with gradients"});
}

TEST(Combiner, RanksThatDifferAreNamed) {
  const auto failures = test::outcomes_over("shm", 2, [](Group& group) {
    Combiner combiner(group, kForeignModel, {.coding = coding(group.rank() == 0 ? "fp16" : "bf16")});
    Foreign memory({0, 1, 2, 3, 4}, 0);
    memory.combine(combiner, 5);
  });
  for (const auto& failure : failures) test::expect_thrown(failure, {"codec bf16 on rank 1"});
}

}  // namespace
}  // namespace syncopate
