// A worker that was away in a step reports it when its clock goes on, and servers average the others.
#include <gtest/gtest.h>

#include "server/dense/server_block.hpp"
#include "server/dense/worker_block.hpp"

namespace syncopate::server {
namespace {

TEST(AWorkerBlock, ThatMissedAStepSaysSoInsteadOfARate) {
  const server::Setup setup{.tables = {{"table", 4}}, .optimizer = "sgd"};
  const JobRules rules(setup);
  std::vector<float> weights(4);
  WorkerBlock block(rules, blocks_of(setup).front(), weights, 0);
  static_cast<void>(block.first_request(0));
  const auto bytes = std::as_bytes(std::span(weights));
  block.receive(Weights{.values = {nullptr, bytes}});
  block.skip_to(3);
  const auto missed = block.request();
  ASSERT_TRUE(missed);
  EXPECT_EQ(std::get<Push>(*missed).rate, kMissed);
  block.receive(Weights{.least = 3, .last = 3, .values = {nullptr, bytes}});
  block.add(weights);
  block.end_step(0.5);
  EXPECT_EQ(std::get<Push>(block.request().value()).rate, 0.5);
}

/// The worker resumes at the others' clock, and does not know the rate of the step that it missed.
TEST(AServerBlock, TakesRateAndAverageOfThoseThatMissedNoStep) {
  const server::Setup setup{.tables = {{"table", 4}}, .workers = 2, .optimizer = "sgd"};
  const JobRules rules(setup);
  ServerBlock block(rules, blocks_of(setup).front(), false);
  const std::vector<float> zero(4), gradient{1, 2, 3, 4};
  block.initialise(std::as_bytes(std::span(zero)), 0);
  const Payload update{nullptr, std::as_bytes(std::span(gradient))};
  block.receive(0, Push{.last = 1, .rate = 0.5, .answer = {.least = 1}, .update = update});
  block.receive(1, Push{.last = 1, .rate = kMissed, .answer = {.least = 1}});
  EXPECT_EQ(block.least(), 1);
  EXPECT_EQ(block.values()[0], -0.5F) << "the average is of one";
}

/// Under DSSP the fastest worker goes on for as long as it then waits least for the slowest one.
TEST(AServerBlock, DecidesByNoPaceOfTheProcessBefore) {
  const server::Setup setup{.tables = {{"table", 4}}, .workers = 2, .consistency = "dssp:0,10", .optimizer = "sgd"};
  const JobRules rules(setup);
  ServerBlock block(rules, blocks_of(setup).front(), false);
  const std::vector<float> zero(4);
  block.initialise(std::as_bytes(std::span(zero)), 0);
  const auto step = [&](std::size_t worker, Clock number, double begin_s, double end_s) {
    static_cast<void>(block.answer(worker, begin_s));
    block.receive(worker, Push{.first = number, .last = number + 1, .rate = 0.5}, end_s);
  };
  step(0, 0, 0, 1);
  step(1, 0, 0, 4);
  step(0, 1, 4, 5);
  ASSERT_EQ(block.answer(0, 5).step, 4) << "worker 1 is expected at 8 s";
  block.join(1, 0, 2);
  EXPECT_EQ(block.answer(0, 5).step, 0) << "the pace of the new process is unknown";
  block.receive(1, Push{.first = 1, .last = 2, .rate = 0.5}, 20);
  step(0, 2, 20, 21);
  EXPECT_EQ(block.answer(0, 21).step, 0) << "its pace is known from its second push on";
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
  block.receive(0, Push{.last = 1, .rate = 0.5, .answer = {.least = 1}, .update = update});
  block.come_back(1);
  ASSERT_EQ(block.least(), 1);
  const std::size_t bytes = block.image().bytes.size();
  block.receive(1, Push{.last = 1, .rate = 0.5, .answer = {.least = 1}, .update = update});
  EXPECT_EQ(block.image().bytes.size(), bytes) << "step 0 is complete";
  block.receive(1, Push{.first = 1, .last = 2, .rate = 0.5, .answer = {.least = 2}, .update = update});
  EXPECT_GT(block.image().bytes.size(), bytes) << "step 1 is not";
  EXPECT_EQ(block.values()[0], -0.5F);
}

}  // namespace
}  // namespace syncopate::server
