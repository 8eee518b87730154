// Messages that a server or a worker refuses, each with the accepted message at the boundary.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "server/dense/worker_block.hpp"
#include "server/table/server_tables.hpp"
#include "syncopate/error.hpp"

namespace syncopate::server {
namespace {

/// A server's messages, by worker, in response to these.
class Told : public testing::Test {
 protected:
  void tell(std::size_t worker, const WorkerMessage& message) { tables_.receive(worker, message); }
  void introduce(std::size_t worker, Clock from = 0) {
    tell(worker, Hello{.is_new = true, .step = from, .setup = {nullptr, std::as_bytes(std::span(bytes_))}});
  }
  void push(std::size_t worker, Clock step) {
    tell(worker, Push{.first = step,
                      .last = step + 1,
                      .rate = 1,
                      .answer = {.least = step + 1},
                      .update = {nullptr, std::as_bytes(std::span(gradient_))}});
  }
  [[nodiscard]] std::ptrdiff_t weights_for(std::size_t worker) const {
    return std::ranges::count_if(sent_, [&](const Outgoing& outgoing) {
      return outgoing.worker == worker && std::holds_alternative<Weights>(outgoing.message);
    });
  }

  const server::Setup setup_{.tables = {{"table", 4}}, .workers = 2, .optimizer = "sgd"};
  const std::string bytes_ = setup_.bytes();
  const std::vector<float> gradient_{1, 2, 3, 4};
  std::vector<Outgoing> sent_;
  ServerTables tables_{0, 1 << 20, [this](Outgoing outgoing) { sent_.push_back(std::move(outgoing)); }};
};

TEST_F(Told, ThatAnotherProcessTakesAPlaceAServerAnswersWhoWaitedForTheOneBefore) {
  introduce(0);
  introduce(1);
  tell(0, FirstValues{.values = {nullptr, std::as_bytes(std::span(gradient_))}});
  push(1, 0);
  EXPECT_EQ(weights_for(1), 0);
  introduce(0, 1);
  EXPECT_EQ(weights_for(1), 1);
}

/// An update of the fixture's block of steps [first, last).
Push update_of(Clock first, Clock last, const std::vector<float>& gradient, double rate = 1) {
  return Push{.first = first,
              .last = last,
              .rate = rate,
              .answer = {.least = last},
              .update = {nullptr, std::as_bytes(std::span(gradient))}};
}

TEST_F(Told, AServerRejectsAnUpdateWhoseFirstStepIsNotTheNextOne) {
  introduce(0);
  introduce(1);
  tell(0, FirstValues{.values = {nullptr, std::as_bytes(std::span(gradient_))}});
  EXPECT_THROW(tell(0, update_of(1, 2, gradient_)), Mismatch) << "step 0 is missing";
  push(0, 0);
  EXPECT_THROW(tell(0, update_of(2, 3, gradient_)), Mismatch) << "step 1 is missing";
  EXPECT_THROW(tell(0, update_of(0, 2, gradient_)), Mismatch) << "step 0 has come already";
  EXPECT_NO_THROW(tell(0, update_of(0, 1, gradient_))) << "sent again as it was";
  push(1, 0);
  EXPECT_EQ(weights_for(0), 1);
  EXPECT_NO_THROW(push(0, 1));
  EXPECT_NO_THROW(tell(1, update_of(1, 3, gradient_))) << "an update of two steps";
}

TEST_F(Told, AServerRejectsUpdatesOfOneStepWithDifferentLearningRates) {
  introduce(0);
  introduce(1);
  tell(0, FirstValues{.values = {nullptr, std::as_bytes(std::span(gradient_))}});
  tell(0, update_of(0, 1, gradient_, 0.1));
  for (const double other : {std::nextafter(0.1, 0.0), std::nextafter(0.1, 1.0), 0.2, 0.0})
    EXPECT_THROW(tell(1, update_of(0, 1, gradient_, other)), Mismatch) << other;
  for (const double bad : {-1e-300, -2.0, std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_THROW(tell(1, update_of(0, 1, gradient_, bad)), Corrupt) << bad;
  EXPECT_THROW(tell(1, update_of(0, 1, gradient_, kMissed)), Corrupt) << "a missed step has no update";
  EXPECT_EQ(weights_for(0), 0) << "no part of it was applied";
  EXPECT_NO_THROW(tell(1, update_of(0, 1, gradient_, 0.1)));
  EXPECT_EQ(weights_for(0), 1);
  EXPECT_NO_THROW(tell(0, update_of(1, 2, gradient_, 0.05))) << "another step has its own rate";
}

TEST_F(Told, AServerRejectsWhatDoesNotFitTheBlock) {
  introduce(0);
  introduce(1);
  for (const std::size_t elements : {0, 3, 5}) {
    const std::vector<float> other(elements, 1.0F);
    EXPECT_THROW(tell(0, FirstValues{.values = {nullptr, std::as_bytes(std::span(other))}}), Corrupt);
    if (elements == 0) continue;  // an update of zeros
    EXPECT_THROW(tell(0, update_of(0, 1, other)), Corrupt) << elements;
  }
  FirstValues message{.values = {nullptr, std::as_bytes(std::span(gradient_))}};
  message.part = 1;
  EXPECT_THROW(tell(0, message), Corrupt) << "sgd keeps no state";
  message.part = 0;
  message.block = 1;
  EXPECT_THROW(tell(0, message), Corrupt) << "there is one block";
  message.block = 0;
  EXPECT_THROW(tell(2, message), Corrupt) << "there are two workers";
  EXPECT_NO_THROW(tell(0, message));
}

/// A worker's half of a block of four elements.
class Asked : public testing::Test {
 protected:
  /// An answer with the block's part of this version, full of `value`.
  Weights answer_of(std::uint64_t version, float value, Clock last = 0) {
    values_.assign(4, value);
    return Weights{.last = last, .version = version, .values = {nullptr, std::as_bytes(std::span(values_))}};
  }

  const server::Setup setup_{.tables = {{"table", 4}}};
  const JobRules rules_{setup_};
  std::vector<float> weights_{1, 2, 3, 4}, values_, first_ = std::vector<float>(4), second_ = first_;
  WorkerBlock block_{rules_, blocks_of(setup_).front(), weights_, 0};
};

TEST_F(Asked, AWorkerIgnoresAnAnswerWithAnotherPartThanItAskedFor) {
  static_cast<void>(block_.first_request(0));
  for (const std::uint64_t part : {0, 1, 2}) {
    block_.receive(answer_of(kKept - part, 9));
    ASSERT_TRUE(block_.under_way()) << "the weights were requested, not part " << part;
  }
  EXPECT_EQ(weights_, (std::vector<float>{1, 2, 3, 4}));
  block_.receive(answer_of(0, 5));
  ASSERT_FALSE(block_.under_way());
  EXPECT_EQ(weights_, std::vector<float>(4, 5));

  block_.gather({first_, second_});
  for (const std::uint64_t part : {0, 1}) {
    const auto request = block_.gathering_request();
    ASSERT_TRUE(request);
    EXPECT_EQ(kept_part(std::get<Fetch>(*request).answer.version), part);
    for (const std::uint64_t other : {std::uint64_t{0}, kExact, kKept - (1 - part), kKept - 2}) {
      block_.receive(answer_of(other, 9));
      ASSERT_TRUE(block_.under_way()) << "part " << part << " was requested, version " << other << " came";
    }
    block_.receive(answer_of(kKept - part, 6));
    ASSERT_FALSE(block_.under_way());
  }
  EXPECT_TRUE(block_.has_gathered());
  EXPECT_EQ(first_, std::vector<float>(4, 6));
  EXPECT_EQ(second_, std::vector<float>(4, 6));
  EXPECT_EQ(weights_, std::vector<float>(4, 5)) << "gathering changes no weights";
}

/// A call that ended by a Timeout is repeated while its request is under way.
TEST_F(Asked, AWorkerIgnoresAPartThatAnEarlierGatherRequested) {
  static_cast<void>(block_.first_request(0));
  block_.receive(answer_of(0, 5));
  block_.gather({first_, second_});
  ASSERT_TRUE(block_.gathering_request());
  block_.receive(answer_of(kKept, 6));
  ASSERT_TRUE(block_.gathering_request());
  block_.gather({first_, second_});
  block_.receive(answer_of(kKept - 1, 9));
  for (const std::uint64_t part : {0, 1}) {
    const auto request = block_.gathering_request();
    ASSERT_TRUE(request);
    EXPECT_EQ(kept_part(std::get<Fetch>(*request).answer.version), part);
    block_.receive(answer_of(kKept - part, part == 0 ? 7 : 8));
  }
  EXPECT_TRUE(block_.has_gathered());
  EXPECT_EQ(first_, std::vector<float>(4, 7));
  EXPECT_EQ(second_, std::vector<float>(4, 8));
}

TEST_F(Asked, AWorkerRefusesAPartInPackets) {
  const server::Setup setup{.tables = {{"table", 4}}, .coding = {.dense_below = 0}, .answers = "topk:0.5"};
  const JobRules rules(setup);
  WorkerBlock block(rules, blocks_of(setup).front(), weights_, 0);
  static_cast<void>(block.first_request(0));
  block.receive(answer_of(0, 5));
  block.gather({first_});
  ASSERT_TRUE(block.gathering_request());
  Weights packets = answer_of(kKept, 9);
  packets.is_coded = true;
  values_.resize(64);
  packets.values.bytes = std::as_bytes(std::span(values_));
  EXPECT_THROW(block.receive(packets), Corrupt);
}

TEST_F(Asked, AWorkerIgnoresAnAnswerToAnEarlierRequestAndRefusesOtherLengths) {
  static_cast<void>(block_.first_request(0));
  block_.receive(answer_of(0, 5));
  block_.add(weights_);
  block_.end_step(0.1);
  ASSERT_TRUE(block_.request());
  block_.receive(answer_of(0, 7, 0));
  EXPECT_TRUE(block_.under_way()) << "it is of step 0, the request of step 1";
  for (const std::size_t elements : {0, 3, 5}) {
    Weights message = answer_of(0, 7, 1);
    values_.resize(elements);
    message.values.bytes = std::as_bytes(std::span(values_));
    EXPECT_THROW(block_.receive(message), Corrupt) << elements;
  }
  EXPECT_EQ(weights_, std::vector<float>(4, 5));
  block_.receive(answer_of(0, 7, 1));
  EXPECT_FALSE(block_.under_way());
}

}  // namespace
}  // namespace syncopate::server
