// Training with exchanges that end in weights: the order of the work changes no bit, and checkpoints go on.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "train/jobs.hpp"

namespace syncopate::test {
namespace {

class Exchanges : public TrainingJobs {
 protected:
  [[nodiscard]] static std::string resnet() {
    return "--model resnet20 --batch 4 --weight-decay 0.01 --momentum 0.8 --lr 0.05 --nesterov --warmup 2 "
           "--fusion-bytes 128KiB ";
  }
  /// On a text.
  [[nodiscard]] std::string transformer() {
    std::ofstream stream(text);
    for (int i = 0; i < 400; ++i) stream << "line " << i * i % 97 << " of a text that repeats itself\n";
    return "--model transformer --data " + text + " --layers 1 --width 32 --heads 2 --context 16 --fusion-bytes 16KiB ";
  }
  const std::string text = folder / "text";
};

TEST_F(Exchanges, OverlappedAndSerialOrderGiveTheSameBits) {
  for (const std::string exchange : {"reduce_broadcast", "allreduce_broadcast --broadcast-every 2", "allreduce"}) {
    const std::string words = "--steps 5 --exchange " + exchange;
    EXPECT_EQ(digest(3, resnet() + words), digest(3, resnet() + words + " --serial")) << exchange;
  }
}

// The norm is known on the root alone.
TEST_F(Exchanges, OverlappedAndSerialOrderGiveTheSameBitsWithMicroBatchesAndClipping) {
  const std::string words = "--steps 4 --accumulate 2 --batch 2 --exchange reduce_broadcast --clip ";
  const std::string clipped = digest(2, transformer() + words + "0.5");
  EXPECT_EQ(clipped, digest(2, transformer() + words + "0.5 --serial"));
  EXPECT_NE(clipped, digest(2, transformer() + words + "0")) << "nothing was clipped";
}

// Alone, a rank is the root of itself: all exchanges are the same arithmetic.
TEST_F(Exchanges, OfOneRankAreTheSameTraining) {
  const std::string none = digest(1, resnet() + "--steps 3 --exchange none");
  for (const std::string exchange : {"allreduce", "reduce_broadcast", "allreduce_broadcast"})
    EXPECT_EQ(digest(1, resnet() + "--steps 3 --exchange " + exchange), none) << exchange;
}

TEST_F(Exchanges, ACheckpointHoldsTheRootsMomentum) {
  const std::string words = " --exchange reduce_broadcast ";
  const std::string whole = digest(2, resnet() + "--steps 4" + words);
  (void)digest(2, resnet() + "--steps 2" + words + "--checkpoint " + file);
  EXPECT_EQ(digest(2, resnet() + "--steps 4" + words + "--resume " + file), whole);
  EXPECT_EQ(digest(2, resnet() + "--steps 4" + words + "--checkpoint-every 1 --checkpoint " + folder / "often"), whole);
}

TEST_F(Exchanges, ACheckpointGoesOnWithOtherRanksAndAnotherExchange) {
  (void)digest(3, resnet() + "--steps 2 --global-batch 12 --exchange reduce_broadcast --checkpoint " + file);
  for (const std::string exchange : {"reduce_broadcast", "allreduce"})
    EXPECT_NE(digest(2, resnet() + "--steps 3 --global-batch 12 --resume " + file + " --exchange " + exchange), "none");
}

/// Spans of one track of a traced step, as (begin, end).
std::vector<std::pair<double, double>> spans(const std::string& trace, const std::string& track) {
  std::vector<std::pair<double, double>> result;
  for (const std::string& line : lines_of(file_text(trace))) {
    const auto row = nlohmann::json::parse(line);
    if (row["track"] == track) result.emplace_back(row["begin_s"].get<double>(), row["end_s"].get<double>());
  }
  return result;
}

TEST_F(Exchanges, TheTracedStepGoesOnUntilTheNextForwardPassHasItsWeights) {
  const std::string run = folder / "run";
  (void)digest(2, resnet() + "--steps 4 --exchange reduce_broadcast --out " + run);
  for (const std::string rank : {"0", "1"}) {
    const std::string trace = run + "/trace-" + rank + ".jsonl";
    const auto reductions = spans(trace, "exchange"), broadcasts = spans(trace, "broadcast");
    const auto forward = spans(trace, "forward"), updates = spans(trace, "update");
    ASSERT_EQ(forward.size(), 1U);
    ASSERT_GT(broadcasts.size(), 3U);
    EXPECT_EQ(reductions.size(), broadcasts.size());
    EXPECT_EQ(updates.size(), rank == "0" ? reductions.size() : 0U);
    EXPECT_LE(spans(trace, "backward").back().second, forward[0].first + 1e-9);
    EXPECT_LT(broadcasts.back().second, forward[0].second);  // the last layer waits for its weights
  }
}

}  // namespace
}  // namespace syncopate::test
