// Codecs whose packets for servers differ from those for ranks, a worker's own masks and its own factors; their states.
#include <algorithm>
#include <cmath>

#include "base/random.hpp"
#include "server/immediate.hpp"
#include "syncopate/error.hpp"

namespace syncopate::server {
namespace {

constexpr std::size_t kMatrixRows = 600, kColumns = 50, kPushers = 2, kThirds = 3;

Setup matrix(const std::string& codec, std::size_t rows = kMatrixRows) {
  return {.tables = {{.name = "matrix", .elements = kMatrixRows * kColumns, .rows = rows}},
          .workers = kPushers,
          .servers = kThirds,
          .coding = {.codec = codec, .dense_below = 0},
          .optimizer = "sgd",
          .hyperparameters = {{"weight_decay", 0}}};
}

float drawn(std::uint64_t stream, std::uint64_t i) {
  return static_cast<float>(base::CounterRandom{stream}.uniform(i) - 0.5);
}

TEST(Blocks, OfACodecOfMatricesHaveWholeRows) {
  std::size_t next = 0;
  for (const Block& block : blocks_of(matrix("low_rank:4"))) {
    EXPECT_EQ(block.elements.begin, next);
    EXPECT_EQ(block.elements.size() % kColumns, 0U);
    EXPECT_EQ(block.columns, kColumns);
    EXPECT_TRUE(block.is_coded);
    next = block.elements.end;
  }
  EXPECT_EQ(next, kMatrixRows * kColumns);
}

/// 601 rows of 3 servers: a placement divides rows, and each goes to one server.
TEST(Blocks, GiveADividedRowToOneServer) {
  server::Setup setup = matrix("low_rank:4");
  setup.tables.front() = {.name = "matrix", .elements = 601 * kColumns, .rows = 601};
  std::size_t next = 0, servers = 0;
  for (const Block& block : blocks_of(setup)) {
    EXPECT_EQ(block.elements.begin, next);
    EXPECT_EQ(block.elements.begin % kColumns, 0U);
    next = block.elements.end;
    ++servers;
  }
  EXPECT_EQ(next, 601 * kColumns);
  EXPECT_EQ(servers, kThirds);
}

TEST(Blocks, OfACodecOfAnyShapeAreCutEvenly) {
  server::Setup setup = matrix("topk:0.01");
  setup.tables.front().elements = 3 * kColumns + 50;
  setup.tables.front().rows = 4;
  for (const Block& block : blocks_of(setup)) {
    EXPECT_LE(block.elements.size(), 67U);
    EXPECT_EQ(block.columns, 1U);
  }
}

/// A packet with all elements has their indices too.
TEST(Blocks, AreSoSmallThatEveryPacketFitsAMessage) {
  constexpr std::size_t kMostElements = kMostBodyBytes / sizeof(float), kElements = kThirds * kMostElements;
  for (const std::string codec : {"none", "topk:1", "importance:1e-8"}) {
    server::Setup setup = matrix(codec, 0);
    setup.tables.front().elements = kElements;
    std::size_t elements = 0;
    for (const Block& block : blocks_of(setup)) {
      elements += block.elements.size();
      EXPECT_EQ(block.elements.size(), codec == "none" ? kMostElements : kMostElements / 2) << codec;
      EXPECT_EQ(block.is_coded, codec != "none");
    }
    EXPECT_EQ(elements, kElements);
  }
}

/// A matrix that has at most the codec's rank on a worker is sent as it is; that of all workers has the sum of their
/// ranks.
TEST(OwnFactors, SumUpToTheAverageOfMatricesOfLowRank) {
  ImmediateJob job(matrix("low_rank:2"));
  const auto element = [](std::size_t worker, std::size_t i) {
    const std::size_t row = i / kColumns, column = i % kColumns;
    return drawn(10 + worker, row) * drawn(20 + worker, column) + drawn(30 + worker, row) * drawn(40 + worker, column);
  };
  job.step(1, [&](std::size_t worker, Clock, std::size_t, std::span<float> gradient) {
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = element(worker, i);
  });
  job.finish();
  for (std::size_t worker = 0; worker < kPushers; ++worker)
    for (std::size_t i = 0; i < kMatrixRows * kColumns; ++i)
      ASSERT_NEAR(job.weights(worker, 0)[i], -(element(0, i) + element(1, i)) / 2, 1e-5) << i;
}

/// A worker adds the rest that its factors leave out to its next gradient, so the sum of all updates follows that of
/// all gradients.
TEST(OwnFactors, LeaveAResidualThatTravelsLater) {
  server::Setup setup = matrix("low_rank:2");
  ImmediateJob job(setup);
  Values sum(kMatrixRows * kColumns);
  const std::uint64_t steps = 200;
  for (std::uint64_t step = 0; step < steps; ++step)
    job.step(1, [&](std::size_t worker, Clock, std::size_t, std::span<float> gradient) {
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        gradient[i] = step == 0 ? drawn(worker, i) : 0;
        sum[i] += gradient[i] / kPushers;
      }
    });
  job.finish();
  double left = 0, all = 0;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    left += std::pow(job.weights(0, 0)[i] + sum[i], 2);
    all += std::pow(sum[i], 2);
  }
  EXPECT_LT(left, 1e-6 * all);
}

TEST(OwnFactors, AreNotMadeOfVectors) {
  for (const Block& block : blocks_of(matrix("low_rank:2", 0))) EXPECT_FALSE(block.is_coded);
}

/// In the first step v is the gradient: an element is applied if |g| > ALPHA (|w| + EPS).
TEST(OwnMasks, HoldWhatChangesTheWeightsMost) {
  const double alpha = 0.5, eps = 0.001;
  std::vector<Values> first(1);
  for (std::size_t i = 0; i < kMatrixRows * kColumns; ++i) first[0].push_back(drawn(7, i));
  const Values before = first[0];
  ImmediateJob job(matrix("importance:0.5,1,0,0,0,0,0.001"), std::move(first));
  const auto element = [](std::size_t worker, std::size_t i) { return drawn(50 + worker, i); };
  job.step(1, [&](std::size_t worker, Clock, std::size_t, std::span<float> gradient) {
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = element(worker, i);
  });
  job.finish();
  std::size_t sent = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    float average = 0;
    for (std::size_t worker = 0; worker < kPushers; ++worker) {
      const bool is_sent = std::fabs(element(worker, i)) > alpha * (std::fabs(before[i]) + eps);
      average += is_sent ? element(worker, i) / kPushers : 0;
      sent += is_sent ? 1 : 0;
    }
    ASSERT_NEAR(job.weights(0, 0)[i], before[i] - average, 1e-6) << i;
  }
  EXPECT_GT(sent, before.size() / 2);
  EXPECT_LT(sent, kPushers * before.size() * 9 / 10);
}

/// With FLUSH 4 every element is sent once in 4 steps, whatever its importance.
TEST(OwnMasks, AreFlushed) {
  ImmediateJob job(matrix("importance:1e9,1,4"), {Values(kMatrixRows * kColumns, 1.0F)});
  for (std::uint64_t step = 0; step < 4; ++step) {
    job.step(1, [&](std::size_t, Clock, std::size_t, std::span<float> gradient) {
      std::ranges::fill(gradient, step == 0 ? 1.0F : 0.0F);
    });
    const auto zeros = std::ranges::count(job.weights(0, 0), 0.0F);
    EXPECT_EQ(static_cast<std::size_t>(zeros), (step + 1) * kMatrixRows * kColumns / 4) << step;
  }
}

/// The threshold of auto:DENSITY follows the worker's own mask.
TEST(OwnMasks, KeepADensity) {
  constexpr double kWanted = 0.05;
  ImmediateJob job(matrix("importance:auto:0.05"), {Values(kMatrixRows * kColumns, 1.0F)});
  double changed = 0;
  const std::uint64_t steps = 60, counted = 20;
  for (std::uint64_t step = 0; step < steps; ++step) {
    const Values before = job.weights(0, 0);
    job.step(1e-3, [&](std::size_t worker, Clock, std::size_t, std::span<float> gradient) {
      for (std::size_t i = 0; i < gradient.size(); ++i)  // worker 1 has none
        gradient[i] = worker == 0 ? drawn(1000 + step, i) : 0;
    });
    if (step + counted < steps) continue;
    for (std::size_t i = 0; i < before.size(); ++i) changed += job.weights(0, 0)[i] == before[i] ? 0 : 1;
  }
  EXPECT_NEAR(changed / (counted * kMatrixRows * kColumns), kWanted, 0.01);
}

/// Worker 0 of the job restores this state of its table; returns the one that it then saves.
std::vector<std::byte> state_of(const server::Setup& setup, const std::vector<std::byte>& restored) {
  Values weights(setup.tables.front().elements, 1.0F);
  WorkerTables worker(setup, 0, {Buffer(std::span(weights))}, [](auto&&...) {});
  const std::vector<std::byte> saved[] = {restored};
  worker.restore(saved, 1);
  return worker.left_out().front();
}

std::vector<std::byte> numbered(std::size_t bytes) {
  std::vector<std::byte> state(bytes);
  for (std::size_t i = 0; i < bytes; ++i) state[i] = static_cast<std::byte>(i % 251);
  return state;
}

TEST(States, OfFeedbackBelongToElementsAndNotToBlocks) {
  server::Setup one = matrix("topk:0.1"), three = one;
  one.servers = 1;
  const std::size_t bytes = kMatrixRows * kColumns * sizeof(float);
  for (const FeedbackKind kind : {FeedbackKind::residual, FeedbackKind::momentum}) {
    for (server::Setup* setup : {&one, &three}) {
      setup->coding.feedback.kind = kind;
      setup->optimizer = "momentum";
      setup->hyperparameters.clear();
    }
    const auto saved = numbered(kind == FeedbackKind::momentum ? 2 * bytes : bytes);
    EXPECT_EQ(state_of(one, saved), saved);
    EXPECT_EQ(state_of(three, saved), saved);
    EXPECT_THROW(static_cast<void>(state_of(three, numbered(bytes - 1))), Misuse);
  }
}

TEST(States, OfACodecBelongToBlocks) {
  server::Setup one = matrix("low_rank:2"), three = one;
  one.servers = 1;
  const std::size_t residual = kMatrixRows * kColumns * sizeof(float), q = 2 * kColumns * sizeof(float);
  std::vector<std::byte> saved = state_of(three, std::vector<std::byte>(residual));
  ASSERT_EQ(saved.size(), residual + 8 + 3 * q);
  const std::vector<std::byte> all = numbered(residual + 3 * q);
  std::ranges::copy(std::span(all).first(residual), saved.begin());
  std::ranges::copy(std::span(all).last(3 * q), saved.begin() + static_cast<std::ptrdiff_t>(residual + 8));
  EXPECT_EQ(state_of(three, saved), saved);
  std::vector<std::byte> others = saved;  // of as many blocks, cut elsewhere
  others[residual] ^= std::byte{1};
  const auto begun = state_of(three, others);
  EXPECT_TRUE(std::ranges::all_of(std::span(begun).last(3 * q), [](std::byte b) { return b == std::byte{0}; }));
  const std::vector<std::byte> joined = state_of(one, saved);
  ASSERT_EQ(joined.size(), residual + 8 + q);
  EXPECT_TRUE(std::ranges::equal(std::span(joined).first(residual), std::span(saved).first(residual)));
  EXPECT_TRUE(std::ranges::all_of(std::span(joined).last(q), [](std::byte b) { return b == std::byte{0}; }));
}

/// Two servers have 5 of the 10 rows each, which low_rank shortens; four have 2 or 3, which it does not.
TEST(States, OfBlocksThatOtherServersDoNotCodeBeginWithZero) {
  server::Setup two = matrix("low_rank:4", 10);
  two.tables.front().elements = 10 * 1000;
  two.servers = 2;
  server::Setup four = two;
  four.servers = 4;
  const std::vector<std::byte> fresh = state_of(two, {});
  const std::size_t residual = 10 * 1000 * sizeof(float);
  ASSERT_GT(fresh.size(), residual);
  EXPECT_TRUE(std::ranges::all_of(std::span(fresh).first(residual), [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_TRUE(state_of(four, fresh).empty());
  EXPECT_THROW(static_cast<void>(state_of(matrix("none"), numbered(4))), Misuse);
}

/// One server has 4 of the 9 rows, which low_rank does not shorten, and one 5, which it does.
TEST(LocalClipping, OfATableWithAnUncodedBlockIsEqualOnAllWorkers) {
  server::Setup setup = matrix("low_rank:4", 9);
  setup.tables.front().elements = 9 * 1000;
  setup.servers = 2;
  setup.coding.feedback.clip_norm = 1;
  ImmediateJob job(setup);
  job.step(1, [](std::size_t, Clock, std::size_t, std::span<float> gradient) { std::ranges::fill(gradient, 1.0F); });
  job.finish();
  for (const float weight : job.weights(0, 0)) ASSERT_NEAR(weight, -1 / std::sqrt(9 * 1000.0), 1e-5);
}

TEST(Answers, OfQuantisersKeepNoState) {
  for (const std::string codec : {"int8", "qsgd:8", "terngrad", "onebit"}) {
    server::Setup setup = matrix("none");
    setup.answers = codec;
    EXPECT_NO_THROW(static_cast<void>(blocks_of(setup))) << codec;
  }
  server::Setup setup = matrix("none");
  setup.answers = "int8";
  ImmediateJob job(setup);
  for (int step = 0; step < 3; ++step)
    job.step(1, [](std::size_t, Clock, std::size_t, std::span<float> gradient) { std::ranges::fill(gradient, 1.0F); });
  job.finish();
  for (const float weight : job.weights(0, 0)) ASSERT_NEAR(weight, -3, 0.05);
}

TEST(Answers, AreCodedWithoutAState) {
  for (const std::string codec : {"importance", "low_rank"}) {
    server::Setup setup = matrix("none");
    setup.answers = codec;
    EXPECT_THROW(
        try { static_cast<void>(blocks_of(setup)); } catch (const Misuse& misuse) {
          EXPECT_NE(std::string(misuse.what()).find("of answers: it keeps a state"), std::string::npos)
              << misuse.what();
          throw;
        },
        Misuse);
  }
}

}  // namespace
}  // namespace syncopate::server
