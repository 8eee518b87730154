// A worker that was away in a step says so when its clock goes on with the others.
#include <gtest/gtest.h>

#include "server/table/worker_block.hpp"

namespace syncopate::server {
namespace {

TEST(AWorkerBlock, ThatMissedAStepSaysSoInsteadOfARate) {
  const server::Setup setup{.tables = {{"table", 4}}, .optimizer = "sgd"};
  const Terms terms(setup);
  std::vector<float> weights(4);
  WorkerBlock block(terms, blocks_of(setup).front(), weights, 0);
  static_cast<void>(block.first_request(0));
  const auto bytes = std::as_bytes(std::span(weights));
  block.receive({.says = Says::weights, .body = {nullptr, bytes}});
  block.skip_to(3);
  const auto missed = block.request();
  ASSERT_TRUE(missed);
  EXPECT_EQ(missed->rate, kMissed);
  block.receive({.says = Says::weights, .last = 3, .least = 3, .body = {nullptr, bytes}});
  block.add(weights);
  block.end_step(0.5);
  EXPECT_EQ(block.request()->rate, 0.5);
}

}  // namespace
}  // namespace syncopate::server
