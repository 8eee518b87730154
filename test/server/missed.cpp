// A worker that was away in a step reports it when its clock goes on, and servers average the others.
#include <gtest/gtest.h>

#include "server/table/server_block.hpp"
#include "server/table/worker_block.hpp"

namespace syncopate::server {
namespace {

TEST(AWorkerBlock, ThatMissedAStepSaysSoInsteadOfARate) {
  const server::Setup setup{.tables = {{"table", 4}}, .optimizer = "sgd"};
  const JobRules rules(setup);
  std::vector<float> weights(4);
  WorkerBlock block(rules, blocks_of(setup).front(), weights, 0);
  static_cast<void>(block.first_request(0));
  const auto bytes = std::as_bytes(std::span(weights));
  block.receive({.kind = MessageKind::weights, .body = {nullptr, bytes}});
  block.skip_to(3);
  const auto missed = block.request();
  ASSERT_TRUE(missed);
  EXPECT_EQ(missed->rate, kMissed);
  block.receive({.kind = MessageKind::weights, .last = 3, .least = 3, .body = {nullptr, bytes}});
  block.add(weights);
  block.end_step(0.5);
  EXPECT_EQ(block.request()->rate, 0.5);
}

/// The worker resumes at the others' clock, and does not know the rate of the step that it missed.
TEST(AServerBlock, TakesRateAndAverageOfThoseThatMissedNoStep) {
  const server::Setup setup{.tables = {{"table", 4}}, .workers = 2, .optimizer = "sgd"};
  const JobRules rules(setup);
  ServerBlock block(rules, blocks_of(setup).front(), false);
  const std::vector<float> zero(4), gradient{1, 2, 3, 4};
  block.initialise(std::as_bytes(std::span(zero)), 0);
  const Payload update{nullptr, std::as_bytes(std::span(gradient))};
  block.take(0, {.kind = MessageKind::push, .last = 1, .least = 1, .rate = 0.5, .body = update});
  block.take(1, {.kind = MessageKind::push, .last = 1, .least = 1, .rate = kMissed});
  EXPECT_EQ(block.least(), 1);
  EXPECT_EQ(block.values()[0], -0.5F) << "the average is of one";
}

/// It is not part of the image either, which would grow by it.
TEST(AServerBlock, HoldsNoUpdateOfAStepThatEndedWithoutItsWorker) {
  const server::Setup setup{.tables = {{"table", 4}}, .workers = 2, .optimizer = "sgd"};
  const JobRules rules(setup);
  ServerBlock block(rules, blocks_of(setup).front(), false);
  const std::vector<float> zero(4), gradient{1, 2, 3, 4};
  block.initialise(std::as_bytes(std::span(zero)), 0);
  const Payload update{nullptr, std::as_bytes(std::span(gradient))};
  block.leave(1);
  block.take(0, {.kind = MessageKind::push, .last = 1, .least = 1, .rate = 0.5, .body = update});
  block.come_back(1);
  ASSERT_EQ(block.least(), 1);
  const std::size_t bytes = block.image().bytes.size();
  block.take(1, {.kind = MessageKind::push, .last = 1, .least = 1, .rate = 0.5, .body = update});
  EXPECT_EQ(block.image().bytes.size(), bytes) << "step 0 is complete";
  block.take(1, {.kind = MessageKind::push, .first = 1, .last = 2, .least = 2, .rate = 0.5, .body = update});
  EXPECT_GT(block.image().bytes.size(), bytes) << "step 1 is not";
  EXPECT_EQ(block.values()[0], -0.5F);
}

}  // namespace
}  // namespace syncopate::server
