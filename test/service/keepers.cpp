// The keeper of a replica: which of the processes that claim to be a server is the server.
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "server/job/setup.hpp"
#include "server/process/replica_keeper.hpp"
#include "server/sent_bytes.hpp"
#include "set_clock.hpp"
#include "syncopate/error.hpp"

namespace syncopate::server {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMemory = std::size_t{1} << 20;
constexpr base::Duration kBound = 6s;

/// Everything that the other end of a stream has received.
struct Received {
  std::vector<RelayMessage> all{};
  bool is_closed = false, has_ended = false;
  std::function<void()> at_first_record{};  ///< called once, by the stream's `send`, whose caller gets what it throws

  /// The last message, if it is of this kind.
  template <class Kind>
  [[nodiscard]] const Kind* last() const {
    return all.empty() ? nullptr : std::get_if<Kind>(&all.back());
  }
  [[nodiscard]] bool is_denied(bool was_replaced) const {
    const auto* const denied = last<Denied>();
    return denied != nullptr && denied->was_replaced == was_replaced;
  }
};

class Recorder final : public streams::Stream {
 public:
  explicit Recorder(Received& received) : received_(received) {}
  void end() override { received_.has_ended = true; }
  void close(std::string_view) override { received_.is_closed = true; }
  [[nodiscard]] const streams::Identity& peer() const noexcept override { return peer_; }
  void send(std::uint64_t, base::ConstBytes head, Payload body) override {
    received_.all.push_back(relay_message_of(joined(head, body)));
    if (received_.last<RecordPart>() == nullptr) return;
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

  void tell(const RelayMessage& message) const { events.received(sent_bytes(message)); }
  void claim(ReplicaKeeper& keeper, bool is_empty) {
    received = {};
    events = keeper.accept(std::make_unique<Recorder>(received));
    tell(Claim{.process = number, .is_empty = is_empty});
  }
  void die() const { events.ended({ErrorKind::peer_lost, "it died"}); }
};

class Keeper : public testing::Test {
 protected:
  /// The healthy process has tables, of which the keeper has a complete replica.
  void SetUp() override {
    healthy.claim(keeper, true);
    ASSERT_NE(healthy.received.last<Holds>(), nullptr);
    ServerTables tables(
        0, kMemory, [](auto&&...) {},
        [this](const Record& record) { each_part(record, [this](const RecordPart& part) { healthy.tell(part); }); });
    tables.follow(0);
    const server::Setup setup{
        .tables = {{"table", 10, false}}, .optimizer = "sgd", .hyperparameters = {{"weight_decay", 0}}};
    tables.receive(0, Hello{.process = 1, .is_new = true, .setup = payload_of(setup.bytes())});
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
    ASSERT_NE(process.received.last<Holds>(), nullptr);
    EXPECT_GT(process.received.all.size(), 1U);
    EXPECT_GT(process.received.last<Holds>()->sequence, 0U);
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
  other.claim(keeper, true);
  turn_after(kBound - 1ms);
  EXPECT_TRUE(other.received.all.empty());
  const std::size_t told = healthy.received.all.size();
  turn_after(1ms);
  EXPECT_TRUE(other.received.is_denied(false));
  EXPECT_TRUE(other.received.is_closed);
  other.events.ended({});
  turn_after(kBound);
  EXPECT_TRUE(other.received.has_ended);
  EXPECT_EQ(healthy.received.all.size(), told);
  EXPECT_FALSE(healthy.received.is_closed);
  EXPECT_TRUE(keeps());
}

TEST_F(Keeper, AdmitsAProcessThatWaitsAsSoonAsTheServersStreamHasEnded) {
  other.claim(keeper, true);
  turn_after(1s);
  healthy.die();
  turn_after(0s);
  expect_server(other);
  turn_after(kBound);
  expect_server(other);
}

TEST_F(Keeper, AdmitsAProcessThatComesAfterTheServersStreamHasEnded) {
  healthy.die();
  other.claim(keeper, true);
  turn_after(0s);
  expect_server(other);
}

TEST_F(Keeper, AnswersAllOthersWhileItHandsOver) {
  healthy.die();
  other.claim(keeper, true);
  Process third{.number = 3};
  EXPECT_TRUE(turn_with(other, [&] {
    EXPECT_TRUE(keeps());
    third.claim(keeper, true);
  }));
  expect_server(other);
  EXPECT_TRUE(third.received.all.empty());
}

TEST_F(Keeper, HandsEverythingOverAgainIfTheStreamIsReplacedMeanwhile) {
  healthy.die();
  other.claim(keeper, true);
  Process third{.number = 3};
  EXPECT_TRUE(turn_with(other, [&] {
    other.die();
    third.claim(keeper, true);
  }));
  EXPECT_NE(other.received.last<RecordPart>(), nullptr);
  EXPECT_TRUE(third.received.all.empty());
  turn_after(0s);
  expect_server(third);
  EXPECT_EQ(third.received.all.size(), other.received.all.size() + 1);
  turn_after(0s);
  EXPECT_EQ(third.received.all.size(), other.received.all.size() + 1);
}

TEST_F(Keeper, NamesTheServerAndTheCauseIfItCannotHandOver) {
  healthy.die();
  other.claim(keeper, true);
  other.received.at_first_record = [] { throw std::bad_alloc(); };
  try {
    static_cast<void>(keeper.turn());
    FAIL() << "it handed over";
  } catch (const SystemFailure& error) {
    EXPECT_NE(std::string(error.what()).find("server 0 "), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(std::bad_alloc().what()), std::string::npos) << error.what();
  }
  EXPECT_NE(other.received.last<RecordPart>(), nullptr) << "without `holds` it does not serve";
  other.die();
  Process third{.number = 3};
  third.claim(keeper, true);
  turn_after(0s);
  expect_server(third);
}

TEST_F(Keeper, RefusesARecordThatComesBeforeAllTablesAreHandedOver) {
  healthy.die();
  other.claim(keeper, true);
  const RecordPart next{.sequence = healthy.received.last<Holds>()->sequence + 1, .change = change::Leave{}};
  EXPECT_TRUE(turn_with(other, [&] { EXPECT_THROW(other.tell(next), Corrupt); }));
  EXPECT_FALSE(keeps());
}

TEST_F(Keeper, RefusesTheServerThatItHasReplacedAtOnce) {
  healthy.die();
  other.claim(keeper, true);
  turn_after(0s);
  healthy.claim(keeper, false);
  EXPECT_TRUE(healthy.received.is_denied(true));
  EXPECT_TRUE(healthy.received.is_closed);
  expect_server(other);
}

TEST_F(Keeper, LetsTheServerReplaceItsOwnStreamWhileAnotherProcessWaits) {
  other.claim(keeper, true);
  Process again{.number = healthy.number};
  again.claim(keeper, false);
  EXPECT_NE(again.received.last<Holds>(), nullptr);
  EXPECT_TRUE(healthy.received.is_closed);
  healthy.die();
  turn_after(kBound);
  EXPECT_TRUE(other.received.is_denied(false));
  EXPECT_FALSE(again.received.is_closed);
}

TEST_F(Keeper, WithoutAReplicaPrefersTheProcessThatHasTables) {
  ReplicaKeeper restarted{
      0, kMemory, kBound, {.level = LogLevel::off}, [] {}, {}, std::make_unique<test::SetClock>(now)};
  other.claim(restarted, true);
  EXPECT_NE(other.received.last<Holds>(), nullptr);
  healthy.claim(restarted, false);
  EXPECT_NE(healthy.received.last<Holds>(), nullptr);
  EXPECT_TRUE(other.received.is_closed);
}

TEST_F(Keeper, EndsTheStreamOfAClaimantThatSendsAnythingElseAndKeepsTheReplica) {
  other.claim(keeper, true);
  EXPECT_THROW(other.tell(Claim{.process = 3, .is_empty = true}), Corrupt);
  EXPECT_THROW(other.tell(RecordPart{}), Corrupt);
  EXPECT_TRUE(keeps());
  EXPECT_FALSE(healthy.received.is_closed);
}

}  // namespace
}  // namespace syncopate::server
