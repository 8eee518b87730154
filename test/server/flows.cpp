// Flows: when a worker's updates leave, in which order messages do, and which weights a forward pass waits for.
#include <gtest/gtest.h>

#include "server/table/server_tables.hpp"
#include "server/table/worker_tables.hpp"
#include "syncopate/error.hpp"

namespace syncopate::server {
namespace {

/// A worker and a server; the test carries each message.
class Exchange {
 public:
  explicit Exchange(const std::string& flow, const std::string& consistency = "bsp")
      : setup_{.tables = {{"front", 4}, {"back", 4}}, .consistency = consistency, .flow = flow, .optimizer = "sgd"},
        server_(0, std::size_t{1} << 20,
                [this](Outgoing outgoing) {
                  if (!std::holds_alternative<Welcome>(outgoing.message)) answers.push_back(std::move(outgoing));
                }),
        worker_(setup_, 0, {Buffer(std::span(weights_[0])), Buffer(std::span(weights_[1]))},
                [this](Request request) { requests.push_back(std::move(request)); }) {
    server_.receive(0, Hello{.is_new = true, .setup = payload_of(setup_.bytes())});
    worker_.offer();
    worker_.begin({});
    carry_requests();
    carry_answers();
  }

  void update(std::size_t table) {
    std::vector<float> gradient(4, 1);
    worker_.update(table, gradient, {1, 1});
  }
  void end_step() { worker_.end_step({1, 1}); }
  void carry_requests() {
    for (const Request& request : std::exchange(requests, {})) server_.receive(0, request.message);
  }
  void carry_answer() {
    worker_.receive(0, std::move(answers.front().message));
    answers.erase(answers.begin());
  }
  void carry_answers() {
    while (!answers.empty()) carry_answer();
  }
  WorkerTables& worker() { return worker_; }

  std::vector<Request> requests;
  std::vector<Outgoing> answers;

 private:
  std::vector<float> weights_[2] = {std::vector<float>(4), std::vector<float>(4)};
  const Setup setup_;
  ServerTables server_;
  WorkerTables worker_;
};

class EachReady : public testing::TestWithParam<const char*> {};

TEST_P(EachReady, UpdateLeavesAtOnceAndItsLayerWaitsOnlyForIt) {
  Exchange exchange(GetParam());
  exchange.update(1);
  EXPECT_EQ(exchange.requests.size(), 1U);
  exchange.update(0);
  ASSERT_EQ(exchange.requests.size(), 2U);
  exchange.end_step();
  EXPECT_EQ(exchange.requests.size(), 2U);
  const bool front_first = std::string(GetParam()) == "front_first";
  EXPECT_EQ(exchange.requests[1].priority < exchange.requests[0].priority, front_first);
  exchange.carry_requests();
  ASSERT_EQ(exchange.answers.size(), 2U);
  EXPECT_EQ(exchange.answers[1].priority < exchange.answers[0].priority, front_first);
  exchange.carry_answer();
  EXPECT_TRUE(exchange.worker().may_read(1));
  EXPECT_FALSE(exchange.worker().may_read(0));
}

INSTANTIATE_TEST_SUITE_P(Flows, EachReady, testing::Values("wait_free", "front_first"));

TEST(Traditional, SendsAllAfterTheBackwardPassAndWaitsForAllBeforeTheForwardPass) {
  Exchange exchange("traditional");
  exchange.update(1);
  exchange.update(0);
  EXPECT_TRUE(exchange.requests.empty());
  exchange.end_step();
  ASSERT_EQ(exchange.requests.size(), 2U);
  exchange.carry_requests();
  exchange.carry_answer();
  EXPECT_FALSE(exchange.worker().may_read(0));
  EXPECT_FALSE(exchange.worker().may_read(1));
  exchange.carry_answers();
  EXPECT_TRUE(exchange.worker().may_read(0));
  EXPECT_TRUE(exchange.worker().may_read(1));
}

TEST(Traditional, TableWithoutAGradientIsSentWithTheOthers) {
  Exchange exchange("traditional");
  exchange.update(1);
  exchange.end_step();
  EXPECT_EQ(exchange.requests.size(), 2U);
}

TEST(Traditional, WeightsOfAnUpdatedTableAreThoseOfTheNextStepAndDemandSendsItsUpdate) {
  Exchange exchange("traditional");
  exchange.update(1);
  EXPECT_TRUE(exchange.worker().may_read(0)) << "the others remain those of this step";
  EXPECT_FALSE(exchange.worker().may_read(1));
  exchange.worker().demand();
  exchange.carry_requests();
  exchange.carry_answers();
  EXPECT_TRUE(exchange.worker().may_read(1));
  exchange.update(0);
  exchange.end_step();
  EXPECT_EQ(exchange.requests.size(), 1U);
}

TEST(Traditional, UpdatesThatAreNotDueAccumulate) {
  Exchange exchange("traditional", "ssp:1");
  exchange.update(1);
  exchange.update(0);
  exchange.end_step();
  EXPECT_TRUE(exchange.requests.empty());
  EXPECT_TRUE(exchange.worker().may_read(0));
  exchange.update(1);
  exchange.update(0);
  exchange.end_step();
  EXPECT_EQ(exchange.requests.size(), 2U);
}

TEST(ASetup, WithAFlowThatDoesNotExistIsDamaged) {
  const server::Setup setup{.tables = {{"table", 4}}, .flow = "back_first", .optimizer = "sgd"};
  EXPECT_THROW(static_cast<void>(server::Setup::of(setup.bytes())), Corrupt);
}

}  // namespace
}  // namespace syncopate::server
