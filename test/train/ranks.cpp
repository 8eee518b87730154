// Exchanges among the ranks of a training, without training: settings that differ, signals, values that are not finite.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "ranks/equal.hpp"
#include "ranks/interrupt.hpp"
#include "ranks/notices.hpp"
#include "syncopate/error.hpp"
#include "update/finite.hpp"

namespace syncopate::test {
namespace {

using train::Notices;
using train::Setting;

/// Runs `body` on every rank and returns the results by rank.
template <class Body>
std::vector<std::string> on_ranks(int size, const Body& body) {
  const auto groups = Group::threads(size);
  std::vector<std::string> said(groups.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t r = 0; r < groups.size(); ++r) threads.emplace_back([&, r] { said[r] = body(*groups[r]); });
  }
  return said;
}

TEST(EqualSettings, ADifferenceIsTheSameMismatchOnEveryRankAndNamesBothValuesAndRanks) {
  const auto said = on_ranks(4, [](Group& group) -> std::string {
    const std::string rate = group.rank() == 2 ? "0.25" : "0.1", batch = group.rank() == 3 ? "64" : "32";
    const std::array<Setting, 3> settings{{{"--seed", "1"}, {"--lr", rate}, {"--batch", batch}}};
    try {
      train::require_equal(group, settings, "start them alike");
    } catch (const Mismatch& mismatch) {
      EXPECT_EQ(mismatch.where().rank, group.rank());
      EXPECT_EQ(mismatch.where().peer, 2);
      return mismatch.what();
    }
    return "none";
  });
  for (const std::string& text : said) EXPECT_EQ(text, "--lr is 0.1 on rank 0 and 0.25 on rank 2: start them alike");
}

TEST(EqualSettings, OfEqualRanksAreNoError) {
  const auto said = on_ranks(3, [](Group& group) -> std::string {
    train::require_equal(group, std::array<Setting, 2>{{{"--lr", "not given"}, {"--data", ""}}}, "");
    return "equal";
  });
  EXPECT_EQ(said, (std::vector<std::string>(3, "equal")));
}

TEST(TrainingNotices, OnlyTheRankOnWhichAValueFirstWasNotFiniteSaysSoOnce) {
  const auto said = on_ranks(4, [](Group& group) {
    Notices notices(group, false);
    std::string text;
    for (std::uint64_t step = 5; step < 9; ++step) {
      const bool origin = group.rank() == 1 || group.rank() == 2;
      if (step > 5 || origin) notices.not_finite(step, "found at step " + std::to_string(step));
      if (step > 5) notices.exchange(0.01);  // ranks that it has reached meanwhile have found it too
      text += notices.take_not_finite();
    }
    return text;
  });
  EXPECT_EQ(said, (std::vector<std::string>{"", "found at step 5", "", ""}));
}

TEST(TrainingNotices, RanksThatTrainAloneSpeakForThemselves) {
  const auto said = on_ranks(2, [](Group& group) {
    Notices notices(group, true);
    if (group.rank() == 1) notices.not_finite(3, "mine");
    notices.exchange(0.01);
    return notices.take_not_finite();
  });
  EXPECT_EQ(said, (std::vector<std::string>{"", "mine"}));
}

TEST(TrainingNotices, ASignalToOneRankIsKnownToAllAtTheSameStepWhateverTheirPace) {
  const auto said = on_ranks(3, [](Group& group) {
    Notices notices(group, false);
    int step = 0;
    for (; notices.signal() == 0 && step < 100; ++step) {
      if (group.rank() == 2 && step == 3) notices.signal_came(15);
      notices.exchange_when_due(group.rank() == 0 ? 0.05 : 0.01);  // the slowest sets the pace: every sixth step
    }
    return std::to_string(step) + " " + std::to_string(notices.signal());
  });
  EXPECT_EQ(said, (std::vector<std::string>(3, "7 15")));
}

TEST(Finite, IsFalseForEachInfinityAndNaNWhereverItStands) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kLargest = std::numeric_limits<float>::max();
  std::vector<float> values(1001, -kLargest);
  values[1] = std::numeric_limits<float>::denorm_min();
  values[2] = kLargest;
  EXPECT_TRUE(train::all_finite(values));
  EXPECT_TRUE(train::all_finite({}));
  for (const float bad : {kInfinity, -kInfinity, std::nanf(""), -std::nanf("")})
    for (const std::size_t at : {std::size_t{0}, std::size_t{500}, std::size_t{1000}}) {
      std::vector<float> broken = values;
      broken[at] = bad;
      EXPECT_FALSE(train::all_finite(broken)) << bad << " at " << at;
    }
}

TEST(Finite, OfALargeGradientARowOrAColumnThatIsNotFiniteIsSeen) {
  constexpr std::size_t kRows = 40, kColumns = 2000, kInner = 9;
  const train::GradientShape shape{kColumns, kInner};
  std::vector<float> good(kRows * kColumns * kInner, 1);
  EXPECT_TRUE(train::looks_finite(good, shape));
  std::vector<float> row = good, column = good;
  for (std::size_t i = 0; i < kColumns; ++i) row[(39 * kColumns + i) * kInner + 4] = std::nanf("");
  for (std::size_t i = 0; i < kRows; ++i) column[(i * kColumns + 1999) * kInner + 8] = std::nanf("");
  EXPECT_FALSE(train::looks_finite(row, shape));
  EXPECT_FALSE(train::looks_finite(column, shape));
  std::vector<float> small(1000, 1);
  small[777] = std::nanf("");
  EXPECT_FALSE(train::looks_finite(small, {10, 1}));
}

TEST(TrainingInterrupt, TheFirstSignalIsNotedAndTheSecondEndsTheProcess) {
  {
    const train::Interrupt interrupt;
    EXPECT_EQ(interrupt.signal(), 0);
    raise(SIGTERM);
    EXPECT_EQ(interrupt.signal(), SIGTERM);
  }
  const auto twice = [] {
    const train::Interrupt interrupt;
    raise(SIGTERM);
    raise(SIGINT);
  };
  EXPECT_EXIT(twice(), testing::KilledBySignal(SIGINT), "");
}

TEST(TrainingInterrupt, EndsByTheSignalAsIfItHadNotBeenNoted) {
  EXPECT_EXIT(train::end_by(SIGTERM), testing::KilledBySignal(SIGTERM), "");
  train::end_by(0);
}

}  // namespace
}  // namespace syncopate::test
