// Updates that travel in parts, and weights that a server sends without a request.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "server/dense/server_block.hpp"
#include "server/dense/worker_block.hpp"
#include "server/table/worker_tables.hpp"
#include "thrown.hpp"

namespace syncopate::server {
namespace {

constexpr std::size_t kElements = 400;

server::Setup setup_of(const std::string& consistency, const std::string& codec = "none", std::size_t workers = 1) {
  return {.tables = {{"table", kElements}},
          .workers = workers,
          .consistency = consistency,
          .coding = {.codec = codec, .dense_below = 1},
          .optimizer = "sgd"};
}

/// The two ends of a block of one worker; weights are 1, and an update of 0.1 is significant.
struct Ends {
  explicit Ends(const server::Setup& setup) : rules(setup), block(blocks_of(setup).front()) {
    at_server.initialise(std::as_bytes(std::span(weights)), 0);
    const Fetch first = std::get<Fetch>(at_worker.first_request(0));
    at_server.ask(0, first.answer);
    deliver();
  }
  void deliver() {
    for (const std::size_t worker : at_server.answerable()) at_worker.receive(at_server.answer(worker));
    at_worker.settle();
  }
  /// The push of a step whose update is 0.5 in the first elements, and 0.001 in the others.
  Push step(std::size_t significant) {
    std::vector<float> update(kElements, 0.001F);
    std::fill_n(update.begin(), significant, 0.5F);
    at_worker.add(update);
    for (std::size_t i = 0; i < kElements; ++i) weights[i] += update[i];
    at_worker.end_step(0);
    return std::get<Push>(at_worker.request().value());
  }
  [[nodiscard]] float at(std::size_t element) const { return at_server.values()[element]; }

  const JobRules rules;
  const Block block;
  std::vector<float> weights = std::vector<float>(kElements, 1.0F);
  WorkerBlock at_worker{rules, block, weights, 0};
  ServerBlock at_server{rules, block, false};
};

TEST(Parts, OfSignificantElementsTravelAndTheRestFollowsAtTheEnd) {
  Ends ends(setup_of("gaia:0.01,5"));
  const Push push = ends.step(3);
  EXPECT_TRUE(push.is_packed);
  EXPECT_LT(push.update.bytes.size(), 40U) << "three values with their indices";
  EXPECT_EQ(push.left, 1);
  ends.at_server.receive(0, push);
  EXPECT_EQ(ends.at(2), 1.5F);
  EXPECT_EQ(ends.at(3), 1) << "stays with the worker";
  EXPECT_EQ(ends.at_server.least(), 0) << "step 0 has not come whole";
  ends.deliver();
  EXPECT_EQ(ends.weights[3], 1.001F) << "the worker reads its own update";
  EXPECT_FALSE(ends.at_worker.request()) << "nothing requires the rest";
  const Push rest = std::get<Push>(ends.at_worker.last_request().value());
  EXPECT_EQ(rest.first, 1);
  EXPECT_EQ(rest.last, 1);
  EXPECT_EQ(rest.piece, 1U);
  EXPECT_EQ(rest.left, 0);
  ends.at_server.receive(0, rest);
  ends.at_server.receive(0, rest);
  EXPECT_EQ(ends.at(3), 1.001F) << "once, although it came twice";
  EXPECT_EQ(ends.at(2), 1.5F);
  EXPECT_EQ(ends.at_server.least(), 1);
}

TEST(Parts, LeaveWholeWhenAnotherWorkerWaits) {
  Ends ends(setup_of("gaia:0.01,5"));
  ends.at_server.receive(0, ends.step(3));
  ends.deliver();
  ends.at_worker.want(1);
  const Push rest = std::get<Push>(ends.at_worker.request().value());
  EXPECT_EQ(rest.piece, 1U);
  EXPECT_EQ(rest.left, 0);
}

TEST(Parts, OfStepsThatAreStillToBeMadeCannotBeRequired) {
  for (const char* consistency : {"gaia:0.01,5", "ssp:5"}) {
    Ends ends(setup_of(consistency));
    ends.at_worker.want(3);
    EXPECT_FALSE(ends.at_worker.request()) << consistency << ": there is nothing to send";
  }
}

TEST(Parts, OfManyElementsAreNotPacked) {
  Ends ends(setup_of("gaia:0.01,5"));
  const Push push = ends.step(kElements - 1);
  EXPECT_FALSE(push.is_packed);
  EXPECT_EQ(push.update.bytes.size(), kElements * sizeof(float));
  ends.at_server.receive(0, push);
  EXPECT_EQ(ends.at(kElements - 1), 1);
}

TEST(Parts, AreCodedByTheJobsCodec) {
  Ends ends(setup_of("gaia:0.01,5", "bf16"));
  const Push push = ends.step(3);
  EXPECT_FALSE(push.is_packed);
  EXPECT_EQ(push.update.bytes.size(), kElements * 2);
  ends.at_server.receive(0, push);
  EXPECT_EQ(ends.at(2), 1.5F);
  EXPECT_EQ(ends.at(3), 1);
}

TEST(Parts, WithoutASignificantElementHaveNoBody) {
  Ends ends(setup_of("gaia:0.01,5"));
  const Push push = ends.step(0);
  EXPECT_TRUE(push.update.bytes.empty());
  EXPECT_EQ(push.left, 1);
}

TEST(Parts, OfAReplicaAreCountedAsOnItsServer) {
  Ends ends(setup_of("gaia:0.01,5"));
  ends.at_server.receive(0, ends.step(3));
  ends.deliver();
  const Push rest = std::get<Push>(ends.at_worker.last_request().value());
  ends.at_server.receive(0, rest);
  ServerBlock replica(ends.rules, ends.block, false);
  replica.restore(ends.at_server.image().bytes);
  replica.receive(0, rest);
  EXPECT_EQ(replica.values()[3], 1.001F) << "the image has the rest";
}

TEST(Parts, ThatAreMalformedAreCorrupt) {
  Ends ends(setup_of("gaia:0.01,5"));
  const Push push = ends.step(3);
  const auto refused = [&](const server::Setup& setup, const std::function<void(Push&)>& damage,
                           const std::vector<std::string>& words) {
    Ends others(setup);
    Push damaged = push;
    damage(damaged);
    test::expect_thrown<Corrupt>(
        [&] {
          others.at_server.receive(0, damaged);
          return 0;
        },
        words);
    EXPECT_EQ(others.at(2), 1);
  };
  refused(setup_of("gaia:0.01,5"), [](Push& of) { of.left = 2; }, {"leaves 2 steps"});
  refused(setup_of("gaia:0.01,5"), [](Push& of) { of.update.bytes = of.update.bytes.first(5); }, {});
  std::vector<std::byte> longer(push.update.bytes.begin(), push.update.bytes.end());
  longer.push_back({});
  refused(setup_of("gaia:0.01,5"), [&](Push& of) { of.update = {nullptr, longer}; }, {"1 bytes follow"});
  refused(setup_of("tap"), [](Push&) {}, {"packed"});
  refused(setup_of("gaia:0.01,0"), [](Push& of) { of.left = 0; }, {"packed"});
  refused(setup_of("gaia:0.01,5", "bf16"), [](Push&) {}, {"packed"});
  refused(setup_of("bsp"), [](Push& of) { of.is_packed = false; }, {"leaves 1 steps"});
}

/// A worker that sends every fourth step has sent every element in FLUSH packets.
TEST(Flushes, CountPackets) {
  Ends ends(setup_of("ssp:3", "importance:1e9,1,4"));
  std::vector<float> update(kElements, 0.5F);
  for (int packet = 0; packet < 4; ++packet) {
    for (int step = 0; step < 4; ++step) {
      ends.at_worker.add(update);
      ends.at_worker.end_step(0);
      std::ranges::fill(update, 0.0F);
    }
    ends.at_server.receive(0, std::get<Push>(ends.at_worker.request().value()));
    ends.deliver();
  }
  EXPECT_EQ(std::ranges::count(ends.at_server.values(), 1.5F), static_cast<std::ptrdiff_t>(kElements));
}

TEST(Unasked, WeightsAreSentOneAtATimeAndOnlyWhenTheyHaveChanged) {
  const server::Setup setup = setup_of("essp:3", "none", 2);
  const JobRules rules(setup);
  ServerBlock block(rules, blocks_of(setup).front(), false);
  const std::vector<float> ones(kElements, 1);
  block.initialise(std::as_bytes(std::span(ones)), 0);
  const auto push = [&](std::size_t worker, Clock step) {
    block.receive(worker, Push{.first = step, .last = step + 1, .update = {nullptr, std::as_bytes(std::span(ones))}});
    for (const std::size_t each : block.answerable()) static_cast<void>(block.answer(each));
  };
  EXPECT_TRUE(block.unasked().empty()) << "no worker has weights yet";
  push(0, 0);
  EXPECT_TRUE(block.unasked().empty()) << "worker 0 has these weights";
  push(1, 0);
  ASSERT_EQ(block.unasked(), std::vector<std::size_t>{0});
  const Weights weights = block.push_weights(0);
  EXPECT_TRUE(weights.is_unasked);
  EXPECT_EQ(weights.least, 1);
  EXPECT_EQ(weights.last, 1);
  push(1, 1);
  EXPECT_TRUE(block.unasked().empty()) << "others are on their way";
  block.see(0);
  EXPECT_EQ(block.unasked(), std::vector<std::size_t>{0});
  block.ask(0, {.least = 2});
  EXPECT_TRUE(block.unasked().empty()) << "worker 0 waits for an answer";
}

TEST(Unasked, WeightsAreAdoptedUnlessAnAnswerIsToCome) {
  Ends ends(setup_of("essp:3"));
  const std::vector<float> fresh(kElements, 7);
  const Weights unasked{.is_unasked = true, .values = {nullptr, std::as_bytes(std::span(fresh))}};
  ends.at_worker.receive(unasked);
  EXPECT_TRUE(ends.at_worker.settle());
  EXPECT_EQ(ends.weights[0], 7);
  std::ranges::fill(ends.weights, 1.0F);
  const Push push = ends.step(1);
  ends.at_worker.receive(unasked);
  EXPECT_FALSE(ends.at_worker.settle());
  EXPECT_EQ(ends.weights[0], 1.5F) << "they may lack the update that is on its way";
  ends.at_server.receive(0, push);
  ends.deliver();
  EXPECT_TRUE(ends.at_worker.last_request() || ends.at_worker.is_finished());
  ends.at_worker.receive(unasked);
  EXPECT_FALSE(ends.at_worker.settle()) << "the end is exact";
}

TEST(Clocks, OfAnotherLengthAreCorrupt) {
  std::vector<float> weights(kElements);
  const server::Setup setup = setup_of("ssp:1");
  WorkerTables tables(setup, 0, {Buffer(std::span(weights))}, [](const Request&) {});
  const std::array<std::uint64_t, 2> clocks{};
  const auto bytes = std::as_bytes(std::span(clocks));
  EXPECT_NO_THROW(tables.receive(0, Clocks{0, {nullptr, bytes.first(8)}}));
  test::expect_thrown<Corrupt>(
      [&] {
        tables.receive(0, Clocks{0, {nullptr, bytes}});
        return 0;
      },
      {"16 bytes", "1 workers"});
  test::expect_thrown<Corrupt>(
      [&] {
        tables.receive(0, Clocks{1, {nullptr, bytes.first(8)}});
        return 0;
      },
      {"block 1 of 1"});
}

TEST(Consistency, WithAPartAndNoEarlyUpdatesIsRefused) {
  static constexpr Consistency kOwn{
      .name = "own", .rule = [](std::span<const double>) {
        return Rule{.part = [](const ClockView&, std::span<const float>, std::span<const float>, std::span<float>) {}};
      }};
  const Catalogue catalogue = Catalogue::standard().with(kOwn);
  test::expect_thrown<Misuse>([&] { return rule_of("own", catalogue); }, {"consistency own has part", "travels_early"});
}

}  // namespace
}  // namespace syncopate::server
