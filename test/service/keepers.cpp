// The keeper of a replica: which of the processes that claim to be a server is the server.
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "server/process/replica_keeper.hpp"
#include "server/table/setup.hpp"
#include "set_clock.hpp"
#include "syncopate/error.hpp"

namespace syncopate::server {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMemory = std::size_t{1} << 20;
constexpr base::Duration kBound = 6s;

/// Everything that the other end of a stream has received.
struct Received {
  std::vector<Relayed> all{};
  bool is_closed = false, has_ended = false;
  std::function<void()> at_first_record{};  ///< called once, by the stream's `send`, whose caller gets what it throws

  [[nodiscard]] bool has(RelayKind kind) const { return !all.empty() && all.back().kind == kind; }
};

class Recorder final : public streams::Stream {
 public:
  explicit Recorder(Received& received) : received_(received) {}
  void end() override { received_.has_ended = true; }
  void close(std::string_view) override { received_.is_closed = true; }
  [[nodiscard]] const streams::Identity& peer() const noexcept override { return peer_; }
  void send(std::uint64_t, base::ConstBytes head, Payload) override {
    const auto bytes = std::make_shared<std::vector<std::byte>>(head.begin(), head.end());
    received_.all.push_back(relayed_of({bytes, base::ConstBytes(*bytes)}));
    if (!received_.has(RelayKind::record)) return;
    if (const auto act = std::exchange(received_.at_first_record, nullptr)) act();
  }

 private:
  Received& received_;
  const streams::Identity peer_{.role = streams::Identity::Role::server};
};

/// A process that claims to be server 0.
struct Process {
  std::uint64_t number = 0;
  Received received{};
  streams::StreamEvents events{};

  void tell(const Relayed& relayed) const {
    const auto head = head_of(relayed);
    const auto bytes = std::make_shared<std::vector<std::byte>>(head.begin(), head.end());
    bytes->insert(bytes->end(), relayed.message.body.bytes.begin(), relayed.message.body.bytes.end());
    events.received({bytes, base::ConstBytes(*bytes)});
  }
  void claim(ReplicaKeeper& keeper, RelayKind how) {
    received = {};
    events = keeper.accept(std::make_unique<Recorder>(received));
    tell({.kind = how, .number = number});
  }
  void die() const { events.ended({ErrorKind::peer_lost, "it died"}); }
};

class Keeper : public testing::Test {
 protected:
  /// The healthy process has tables, of which the keeper has a complete replica.
  void SetUp() override {
    healthy.claim(keeper, RelayKind::claim_empty);
    ASSERT_TRUE(healthy.received.has(RelayKind::holds));
    ServerTables tables(
        0, kMemory, [](auto&&...) {},
        [this](const Record& record) { each_part(record, [this](const Relayed& part) { healthy.tell(part); }); });
    tables.follow(0);
    const server::Setup setup{
        .tables = {{"table", 10, false}}, .optimizer = "sgd", .hyperparameters = {{"weight_decay", 0}}};
    tables.receive(0, {.kind = MessageKind::setup, .last = 1, .version = 1, .body = payload_of(setup.bytes())});
    ASSERT_TRUE(keeps());
  }
  [[nodiscard]] bool keeps() const {
    ServerStatus status;
    keeper.count(status);
    return status.keeps_replica;
  }
  void turn_after(base::Duration time) {
    now += time;
    static_cast<void>(keeper.turn());
  }
  /// The tables of the healthy process are handed over to it.
  void expect_server(const Process& process) const {
    EXPECT_TRUE(process.received.has(RelayKind::holds));
    EXPECT_GT(process.received.all.size(), 1U);
    EXPECT_GT(process.received.all.back().number, 0U);
    EXPECT_FALSE(process.received.is_closed);
  }

  /// The process receives the tables, and before the second message of them `act` runs on another thread. Returns
  /// whether it ended before the keeper went on.
  bool turn_with(Process& process, std::function<void()> act) {
    std::future<void> acting;
    bool has_acted = false;
    process.received.at_first_record = [&] {
      acting = std::async(std::launch::async, std::move(act));
      has_acted = acting.wait_for(10s) == std::future_status::ready;
    };
    static_cast<void>(keeper.turn());
    return has_acted;
  }

  base::Time now{};
  ReplicaKeeper keeper{0, kMemory, kBound, {.level = LogLevel::off}, [] {}, {}, std::make_unique<test::SetClock>(now)};
  Process healthy{.number = 1}, other{.number = 2};
};

TEST_F(Keeper, RefusesAProcessThatClaimsALiveServerAndTheServerNoticesNothing) {
  other.claim(keeper, RelayKind::claim_empty);
  turn_after(kBound - 1ms);
  EXPECT_TRUE(other.received.all.empty());
  const std::size_t told = healthy.received.all.size();
  turn_after(1ms);
  EXPECT_TRUE(other.received.has(RelayKind::occupied));
  EXPECT_TRUE(other.received.is_closed);
  other.events.ended({});
  turn_after(kBound);
  EXPECT_TRUE(other.received.has_ended);
  EXPECT_EQ(healthy.received.all.size(), told);
  EXPECT_FALSE(healthy.received.is_closed);
  EXPECT_TRUE(keeps());
}

TEST_F(Keeper, AdmitsAProcessThatWaitsAsSoonAsTheServersStreamHasEnded) {
  other.claim(keeper, RelayKind::claim_empty);
  turn_after(1s);
  healthy.die();
  turn_after(0s);
  expect_server(other);
  turn_after(kBound);
  expect_server(other);
}

TEST_F(Keeper, AdmitsAProcessThatComesAfterTheServersStreamHasEnded) {
  healthy.die();
  other.claim(keeper, RelayKind::claim_empty);
  turn_after(0s);
  expect_server(other);
}

TEST_F(Keeper, AnswersAllOthersWhileItHandsOver) {
  healthy.die();
  other.claim(keeper, RelayKind::claim_empty);
  Process third{.number = 3};
  EXPECT_TRUE(turn_with(other, [&] {
    EXPECT_TRUE(keeps());
    third.claim(keeper, RelayKind::claim_empty);
  }));
  expect_server(other);
  EXPECT_TRUE(third.received.all.empty());
}

TEST_F(Keeper, HandsEverythingOverAgainIfTheStreamIsReplacedMeanwhile) {
  healthy.die();
  other.claim(keeper, RelayKind::claim_empty);
  Process third{.number = 3};
  EXPECT_TRUE(turn_with(other, [&] {
    other.die();
    third.claim(keeper, RelayKind::claim_empty);
  }));
  EXPECT_TRUE(other.received.has(RelayKind::record));
  EXPECT_TRUE(third.received.all.empty());
  turn_after(0s);
  expect_server(third);
  EXPECT_EQ(third.received.all.size(), other.received.all.size() + 1);
  turn_after(0s);
  EXPECT_EQ(third.received.all.size(), other.received.all.size() + 1);
}

TEST_F(Keeper, NamesTheServerAndTheCauseIfItCannotHandOver) {
  healthy.die();
  other.claim(keeper, RelayKind::claim_empty);
  other.received.at_first_record = [] { throw std::bad_alloc(); };
  try {
    static_cast<void>(keeper.turn());
    FAIL() << "it handed over";
  } catch (const SystemFailure& error) {
    EXPECT_NE(std::string(error.what()).find("server 0 "), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(std::bad_alloc().what()), std::string::npos) << error.what();
  }
  EXPECT_TRUE(other.received.has(RelayKind::record)) << "without `holds` it does not serve";
  other.die();
  Process third{.number = 3};
  third.claim(keeper, RelayKind::claim_empty);
  turn_after(0s);
  expect_server(third);
}

TEST_F(Keeper, RefusesARecordThatComesBeforeAllTablesAreHandedOver) {
  healthy.die();
  other.claim(keeper, RelayKind::claim_empty);
  const Relayed next{
      .kind = RelayKind::record, .event = Event::leave, .number = healthy.received.all.back().number + 1};
  EXPECT_TRUE(turn_with(other, [&] { EXPECT_THROW(other.tell(next), Corrupt); }));
  EXPECT_FALSE(keeps());
}

TEST_F(Keeper, RefusesTheServerThatItHasReplacedAtOnce) {
  healthy.die();
  other.claim(keeper, RelayKind::claim_empty);
  turn_after(0s);
  healthy.claim(keeper, RelayKind::claim);
  EXPECT_TRUE(healthy.received.has(RelayKind::replaced));
  EXPECT_TRUE(healthy.received.is_closed);
  expect_server(other);
}

TEST_F(Keeper, LetsTheServerReplaceItsOwnStreamWhileAnotherProcessWaits) {
  other.claim(keeper, RelayKind::claim_empty);
  Process again{.number = healthy.number};
  again.claim(keeper, RelayKind::claim);
  EXPECT_TRUE(again.received.has(RelayKind::holds));
  EXPECT_TRUE(healthy.received.is_closed);
  healthy.die();
  turn_after(kBound);
  EXPECT_TRUE(other.received.has(RelayKind::occupied));
  EXPECT_FALSE(again.received.is_closed);
}

TEST_F(Keeper, WithoutAReplicaPrefersTheProcessThatHasTables) {
  ReplicaKeeper restarted{
      0, kMemory, kBound, {.level = LogLevel::off}, [] {}, {}, std::make_unique<test::SetClock>(now)};
  other.claim(restarted, RelayKind::claim_empty);
  EXPECT_TRUE(other.received.has(RelayKind::holds));
  healthy.claim(restarted, RelayKind::claim);
  EXPECT_TRUE(healthy.received.has(RelayKind::holds));
  EXPECT_TRUE(other.received.is_closed);
}

TEST_F(Keeper, EndsTheStreamOfAClaimantThatSendsAnythingElseAndKeepsTheReplica) {
  other.claim(keeper, RelayKind::claim_empty);
  EXPECT_THROW(other.tell({.kind = RelayKind::claim_empty, .number = 3}), Corrupt);
  EXPECT_THROW(other.tell({.kind = RelayKind::record}), Corrupt);
  EXPECT_TRUE(keeps());
  EXPECT_FALSE(healthy.received.is_closed);
}

}  // namespace
}  // namespace syncopate::server
