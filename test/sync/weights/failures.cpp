// Exchanges that end in weights: errors when gradients, the update or the root fail, and rejected options.
#include <gtest/gtest.h>

#include "ranks.hpp"
#include "sync/replica.hpp"
#include "syncopate/error.hpp"
#include "syncopate/synchronizer.hpp"
#include "thrown.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using namespace test;

TEST(ExchangeInWeights, NamesAGradientThatNeverCameWhicheverWeightsAreWaitedFor) {
  auto groups = Group::threads(3, {.timeout = 20s});
  const auto failures = test::outcomes(3, [&](int rank) {
    Trained trained(*groups[static_cast<std::size_t>(rank)], {.policy = "wfbp", .exchange = "reduce_broadcast"});
    trained.backward(0, rank == 1 ? 2 : SIZE_MAX);
    trained.synchronizer->wait(4);  // its own gradient came, on every rank
    trained.synchronizer->wait();
  });
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(kind_thrown(failures[rank]).starts_with(rank == 1 ? "Misuse: " : "RemoteFailure: "));
    EXPECT_EQ(expect_thrown(failures[rank], {}).tensor, "fc1");
  }
}

TEST(ExchangeInWeights, CountsMissingGradientsAsZeroOnRequest) {
  test::on_groups(2, [&](Group& group) {
    Trained trained(group, {.policy = "wfbp", .exchange = "reduce_broadcast", .zero_missing = true});
    const auto before = trained.replica.all();
    trained.backward(0, 2);
    trained.synchronizer->wait(0);
    trained.synchronizer->wait();
    EXPECT_EQ(trained.replica.all()[2], before[2]);
    EXPECT_NE(trained.replica.all()[1], before[1]);
  });
}

/// Rank 1 alone passes `wrong`: it throws Misuse, and the error of every rank contains `reason`.
void expect_named(const SynchronizerOptions& right, const SynchronizerOptions& wrong, const std::string& reason) {
  for (const char* transport : {"tcp", "shm"}) {
    const auto failures = test::outcomes_over(
        transport, 3, [&](Group& group) { Synchronizer(group, kModel, group.rank() == 1 ? wrong : right); });
    expect_thrown<Misuse>(failures[1], {});
    for (const std::exception_ptr& failure : failures) expect_thrown(failure, {reason});
  }
}

TEST(ExchangeInWeights, EveryRankReadsWhyOneRankIsRefused) {
  const Replica replica(0);
  const SynchronizerOptions in_weights{
      .exchange = "reduce_broadcast", .weights = replica.weights, .update = [](std::size_t, std::size_t) {}};
  const SynchronizerOptions looks{.coding = {.codec = "importance"}, .weights = replica.weights};
  SynchronizerOptions wrong = in_weights;
  wrong.weights.clear();
  expect_named(in_weights, wrong, "exchange reduce_broadcast needs the weights of 5 gradients");
  wrong = in_weights;
  wrong.update = nullptr;
  expect_named(in_weights, wrong, "ends in weights and needs");
  wrong = looks;
  wrong.weights.clear();
  expect_named(looks, wrong, "codec importance needs the weights of 5 gradients");
}

TEST(ExchangeInWeights, AFailingUpdateIsToldToEveryRank) {
  auto groups = Group::threads(3, {.timeout = 20s});
  const auto failures = test::outcomes(3, [&](int rank) {
    SynchronizerOptions options{.policy = "wfbp", .exchange = "reduce_broadcast"};
    options.update = [](std::size_t first, std::size_t) {
      if (first == 1) throw std::runtime_error("the rate is not a number");
    };
    Trained trained(*groups[static_cast<std::size_t>(rank)], options);
    trained.backward(0);
    trained.synchronizer->wait(0);
  });
  EXPECT_EQ(thrown<std::runtime_error>(failures[0]), "the rate is not a number");
  for (const std::size_t rank : {1, 2})
    EXPECT_EQ(
        expect_thrown<RemoteFailure>(failures[rank], {"the update of 'bn1' failed: the rate is not a number"}).peer, 0);
}

TEST(ExchangeInWeights, ARootThatStopsIsNamedByWhoeverWaitsForItsWeights) {
  auto groups = Group::threads(3, {.timeout = 500ms});
  const auto failures = test::outcomes(3, [&](int rank) {
    Trained trained(*groups[static_cast<std::size_t>(rank)], {.policy = "wfbp", .exchange = "reduce_broadcast"});
    train(trained, 1, Order::serial);
    if (rank == 0) return;
    trained.backward(1);
    trained.synchronizer->wait(0);
  });
  EXPECT_FALSE(failures[0]);
  for (const std::size_t rank : {1, 2}) expect_thrown<Timeout>(failures[rank], {"rank 0 has not begun it"});
}

TEST(ExchangeInWeights, RefusesWhatDoesNotFit) {
  test::on_groups(1, [&](Group& group) {
    std::vector<float> memory(10);
    const auto make = [&](const SynchronizerOptions& options) { Synchronizer(group, {{"w", 4}}, options); };
    const auto update = [](std::size_t, std::size_t) {};
    const std::vector<Buffer> right{std::span(memory).first(4)}, wrong{std::span(memory).first(5)},
        shorter{std::span(memory).first(3)};
    EXPECT_NO_THROW(make({.exchange = "reduce_broadcast", .weights = right, .update = update}));
    EXPECT_THROW(make({.exchange = "reduce_broadcast", .weights = right}), Misuse);
    EXPECT_THROW(make({.exchange = "reduce_broadcast", .update = update}), Misuse);
    EXPECT_THROW(make({.exchange = "reduce_broadcast", .weights = wrong, .update = update}), Misuse);
    EXPECT_THROW(make({.exchange = "reduce_broadcast", .weights = shorter, .update = update}), Misuse);
    EXPECT_THROW(make({.exchange = "allreduce", .weights = right, .update = update}), Misuse);
    const SynchronizerOptions never{
        .exchange = "allreduce_broadcast", .weights = right, .update = update, .broadcast_every = 0};
    EXPECT_THROW(make(never), Misuse);
    SynchronizerOptions always = never;
    always.broadcast_every = 1;
    EXPECT_NO_THROW(make(always));
    EXPECT_THROW((void)updater_of("reduce_brodcast"), Misuse);
    EXPECT_EQ(updater_of("reduce_broadcast"), Updater::root);
    EXPECT_EQ(updater_of("allreduce"), Updater::caller);
  });
}

}  // namespace
}  // namespace syncopate
