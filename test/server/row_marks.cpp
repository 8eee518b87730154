// Marks of rows: a worker that returns, and a process in its place, counts each meeting once.
#include "server/rows/row_marks.hpp"

#include <gtest/gtest.h>

#include "server/job/setup.hpp"
#include "server/table/server_tables.hpp"
#include "syncopate/error.hpp"

namespace syncopate::server {
namespace {

constexpr Clock kVisit = 41, kNextVisit = 61;  ///< the meetings with which visits begin

/// Three workers in lockstep, whose servers write a snapshot every 20 steps.
class OfMarks : public testing::Test {
 protected:
  void mark(std::size_t worker, Clock steps) { marks_.apply(worker, MarkRows{.steps = steps, .meets = true}); }
  void meet(std::size_t worker, Clock meeting) { marks_.apply(worker, MarkRows{.meets = true, .meeting = meeting}); }
  /// `visit`: the meeting with which it begins.
  void begin(std::size_t worker, Clock visit) { meet(worker, visit); }
  void end(std::size_t worker, Clock visit) { meet(worker, visit + 1); }
  /// The workers that have met, in binary: worker 0 is the last digit.
  [[nodiscard]] int met() const {
    int met = 0;
    for (int worker = 0; worker < 3; ++worker)
      met |= marks_.has_met(static_cast<std::size_t>(worker)) ? 1 << worker : 0;
    return met;
  }

  RowMarks marks_{3, 0};
};

TEST_F(OfMarks, AWorkerThatReturnsAfterAMeetingDoesNotWaitForTheNextOne) {
  marks_.leave(2);
  for (const Clock steps : {20, 40, 60})
    for (const std::size_t worker : {0, 1}) mark(worker, steps);
  marks_.come_back(2);
  EXPECT_EQ(marks_.ended(), 0);
  mark(2, 60);  // its clock is that of the others, 63
  EXPECT_EQ(met(), 0b111);
  EXPECT_EQ(marks_.ended(), 60);
  for (const std::size_t worker : {2, 0}) mark(worker, 80);
  EXPECT_EQ(met(), 0b010) << "the next meeting is of all";
  mark(1, 80);
  EXPECT_EQ(met(), 0b111);
}

TEST_F(OfMarks, AWorkerThatReturnsBetweenTheMarksOfAStepBelongsToItsMeeting) {
  marks_.leave(2);
  mark(0, 20);
  marks_.come_back(2);
  mark(1, 20);
  EXPECT_EQ(met(), 0b100) << "the others must not push before its pushes of these steps have come";
  EXPECT_EQ(marks_.ended(), 0);
  mark(2, 20);
  EXPECT_EQ(met(), 0b111);
  EXPECT_EQ(marks_.ended(), 20);
}

TEST_F(OfMarks, AProcessThatJoinsBetweenTheMarksOfAStepBelongsToItsMeeting) {
  for (const bool has_left : {false, true}) {
    marks_ = {3, 0};
    if (has_left) marks_.leave(2);
    mark(0, 20);
    marks_.join(2, 19, 7);
    mark(1, 20);
    EXPECT_EQ(met(), 0b100);
    EXPECT_EQ(marks_.ended(), 19);
    mark(2, 20);
    EXPECT_EQ(met(), 0b111);
  }
}

TEST_F(OfMarks, AProcessThatJoinsAtTheStepOfAMeetingWaitsForTheOthersMarks) {
  mark(0, 20);
  marks_.join(2, 20, 7);
  mark(2, 20);
  EXPECT_EQ(met(), 0b010);
  mark(1, 20);
  EXPECT_EQ(met(), 0b111);
  EXPECT_EQ(marks_.ended(), 20);
}

TEST_F(OfMarks, WorkersDoNotWaitForOneThatLeaves) {
  for (const std::size_t worker : {0, 1}) mark(worker, 20);
  EXPECT_EQ(met(), 0b100);
  marks_.leave(2);
  EXPECT_EQ(met(), 0b111);
  EXPECT_EQ(marks_.ended(), 20);
  for (const std::size_t worker : {0, 1}) marks_.leave(worker);
  EXPECT_EQ(marks_.ended(), std::nullopt);
}

TEST_F(OfMarks, TheNextVisitIsOfAWorkerThatReturnsToo) {
  marks_.leave(2);
  for (const std::size_t worker : {0, 1}) begin(worker, kVisit);
  EXPECT_EQ(met(), 0b111);
  for (const std::size_t worker : {0, 1}) end(worker, kVisit);
  Clock next = kNextVisit;
  for (const bool joins : {false, true}) {
    if (joins)
      marks_.join(2, 0, 7);
    else
      marks_.come_back(2);
    EXPECT_EQ(met(), 0b111) << "that visit was without it";
    begin(0, next);
    EXPECT_EQ(met(), 0b110);
    for (const std::size_t worker : {1, 2}) begin(worker, next);
    EXPECT_EQ(met(), 0b111);
    for (const std::size_t worker : {0, 1}) end(worker, next);
    EXPECT_EQ(met(), 0b100);
    end(2, next);
    EXPECT_EQ(met(), 0b111);
    marks_.leave(2);
    next += 20;
  }
}

TEST_F(OfMarks, AWorkerThatReturnsDuringAVisitDoesNotEndItByItsBegin) {
  marks_.leave(2);
  for (const std::size_t worker : {0, 1}) begin(worker, kVisit);
  marks_.come_back(2);
  begin(2, kNextVisit);
  EXPECT_EQ(met(), 0b011);
  end(0, kVisit);
  EXPECT_EQ(met(), 0b010) << "worker 1 is inside";
  end(1, kVisit);
  EXPECT_EQ(met(), 0b011);
  for (const std::size_t worker : {0, 1}) begin(worker, kNextVisit);
  EXPECT_EQ(met(), 0b111);
  for (const std::size_t worker : {0, 1, 2}) end(worker, kNextVisit);
  EXPECT_EQ(met(), 0b111);
}

/// The servers agree with a process on the meeting after which it takes part. It has joined the others at an earlier
/// one, so that they go no further until they agree.
TEST_F(OfMarks, AProcessTakesPartAfterTheMeetingOnWhichTheServersAgree) {
  marks_.join(2, 0, 7);
  for (const std::size_t worker : {0, 1, 2}) meet(worker, 1);
  for (const std::size_t worker : {0, 1, 2}) meet(worker, 2);
  marks_.join(2, 0, 8);
  EXPECT_EQ(marks_.meeting_of(2), 2U);
  for (const std::size_t worker : {0, 1}) meet(worker, 3);
  EXPECT_EQ(met(), 0b100);
  marks_.join(2, 0, 8, 4);  // on another server they had come to 3 before it joined
  EXPECT_EQ(marks_.meeting_of(2), 4U);
  EXPECT_EQ(met(), 0b111);
  for (const std::size_t worker : {0, 1}) meet(worker, 4);
  EXPECT_EQ(met(), 0b111);
  for (const std::size_t worker : {0, 1}) meet(worker, 5);
  EXPECT_EQ(met(), 0b100);
  meet(2, 5);
  EXPECT_EQ(met(), 0b111);
}

TEST_F(OfMarks, AWorkerThatReturnsDuringAVisitComesToIt) {
  marks_.leave(2);
  for (const std::size_t worker : {0, 1}) begin(worker, kVisit);
  marks_.come_back(2);
  begin(2, kVisit);
  EXPECT_EQ(met(), 0b111);
  end(2, kVisit);
  EXPECT_EQ(met(), 0b011) << "others are inside";
  for (const std::size_t worker : {0, 1}) end(worker, kVisit);
  EXPECT_EQ(met(), 0b111);
  begin(0, kNextVisit);
  EXPECT_EQ(met(), 0b110);
  for (const std::size_t worker : {1, 2}) begin(worker, kNextVisit);
  EXPECT_EQ(met(), 0b111);
}

TEST_F(OfMarks, AWorkerThatIsGivenUpInsideAVisitEndsThatVisitWhenItReturns) {
  for (const bool are_in_next : {false, true}) {
    marks_ = {3, 0};
    for (const std::size_t worker : {0, 1, 2}) begin(worker, kVisit);
    marks_.leave(2);
    for (const std::size_t worker : {0, 1}) end(worker, kVisit);
    const auto others_begin = [&] {
      for (const std::size_t worker : {0, 1}) begin(worker, kNextVisit);
    };
    if (are_in_next) others_begin();
    marks_.come_back(2);
    end(2, kVisit);
    EXPECT_EQ(met(), 0b111) << "it waits for none, and none for it";
    if (!are_in_next) {
      others_begin();
      EXPECT_EQ(met(), 0b100);
      begin(2, kNextVisit);
    }
    for (const std::size_t worker : {0, 1}) end(worker, kNextVisit);
    EXPECT_EQ(met(), are_in_next ? 0b111 : 0b100);
  }
}

TEST_F(OfMarks, AWorkerThatReturnsMakesItsVisitsThatOthersMadeMeanwhileWithoutThem) {
  meet(2, 1);
  marks_.leave(2);
  for (const Clock meeting : {1, 2, 3, 4})
    for (const std::size_t worker : {0, 1}) meet(worker, meeting);
  marks_.come_back(2);
  for (const Clock meeting : {2, 3, 4}) {
    meet(2, meeting);
    EXPECT_EQ(met(), 0b111);
  }
  meet(2, 5);
  EXPECT_EQ(met(), 0b011) << "the next visit is of all";
}

TEST_F(OfMarks, AWorkerThatReturnsIntoItsVisitIsAwaited) {
  for (const std::size_t worker : {0, 1, 2}) begin(worker, kVisit);
  marks_.leave(2);
  marks_.come_back(2);
  for (const std::size_t worker : {0, 1}) end(worker, kVisit);
  EXPECT_EQ(met(), 0b100);
  end(2, kVisit);
  EXPECT_EQ(met(), 0b111);
}

TEST_F(OfMarks, AProcessThatReplacesAnotherOneDuringAVisitIsNoPartOfIt) {
  for (const bool has_left : {false, true}) {
    marks_ = {3, 0};
    marks_.join(2, 0, 7);
    for (const std::size_t worker : {0, 1, 2}) begin(worker, kVisit);
    if (has_left) marks_.leave(2);
    marks_.join(2, 0, 8);
    EXPECT_EQ(met(), 0b111);
    for (const std::size_t worker : {0, 1}) end(worker, kVisit);
    EXPECT_EQ(met(), 0b111);
    begin(2, kNextVisit);
    EXPECT_EQ(met(), 0b011);
    for (const std::size_t worker : {0, 1}) begin(worker, kNextVisit);
    EXPECT_EQ(met(), 0b111);
    for (const std::size_t worker : {0, 1}) end(worker, kNextVisit);
    EXPECT_EQ(met(), 0b100);
  }
}

TEST_F(OfMarks, AWorkersFirstProcessIsAwaitedByAVisitThatHasBegun) {
  for (const std::size_t worker : {0, 1}) begin(worker, kVisit);
  for (int repeats = 0; repeats < 2; ++repeats) {
    marks_.join(2, 0, 7);
    EXPECT_EQ(met(), 0b100);
  }
  begin(2, kVisit);
  EXPECT_EQ(met(), 0b111);
}

TEST_F(OfMarks, AMarkOfStepsAloneIsAwaitedByNoWorker) {
  marks_.apply(0, MarkRows{.steps = 20});
  EXPECT_EQ(met(), 0b111);
  EXPECT_EQ(marks_.applied_of(0), 1U);
}

TEST_F(OfMarks, AnImageContinuesTheMeetings) {
  marks_.join(2, 3, 7);
  mark(0, 20);
  begin(1, kVisit);
  std::string bytes;
  marks_.write_to(bytes);
  EXPECT_EQ(bytes.size(), marks_.written_bytes());
  marks_ = {3, 0};
  marks_.read_from(std::as_bytes(std::span(bytes)));
  EXPECT_EQ(met(), 0b100);
  EXPECT_EQ(marks_.process_of(2), 7U);
  EXPECT_EQ(marks_.applied_of(0), 1U);
  for (const std::size_t worker : {1, 2}) mark(worker, 20);
  for (const std::size_t worker : {0, 2}) begin(worker, kVisit);
  EXPECT_EQ(met(), 0b111);
}

TEST_F(OfMarks, AnImageContinuesAReturnDuringAVisit) {
  const auto continue_from_image = [this] {
    std::string bytes;
    marks_.write_to(bytes);
    marks_ = {3, 0};
    marks_.read_from(std::as_bytes(std::span(bytes)));
  };
  begin(2, kVisit);
  marks_.leave(2);
  for (const std::size_t worker : {0, 1}) end(worker, kVisit);
  for (const std::size_t worker : {0, 1}) begin(worker, kNextVisit);
  marks_.come_back(2);
  continue_from_image();
  EXPECT_EQ(met(), 0b111);
  end(2, kVisit);
  for (const std::size_t worker : {0, 1}) end(worker, kNextVisit);
  EXPECT_EQ(met(), 0b111) << "it waits for none, and none for it";
  std::string bytes;
  marks_.write_to(bytes);
  bytes[1] = 1;  // excused from 128 meetings
  EXPECT_THROW(marks_.read_from(std::as_bytes(std::span(bytes))), Corrupt);
}

/// A server of two workers with a table of rows, and one of weights unless `rows_only`.
class OneServer {
 public:
  explicit OneServer(bool rows_only) {
    if (!rows_only) setup.tables = {{"weights", 4}};
    tables.take_images(20, [this](const ServerTables::Image& image) {
      if (image.piece + 1 == image.pieces) images.push_back(image.step);
    });
  }
  void set_up(std::size_t worker, std::uint64_t process, bool is_new, Clock from = 0) {
    tables.receive(worker,
                   Hello{.process = process, .is_new = is_new, .step = from, .setup = payload_of(setup.bytes())});
  }
  /// The refusal of a process that returns.
  std::string refusal(std::size_t worker, std::uint64_t process) {
    try {
      set_up(worker, process, false);
    } catch (const Mismatch& error) {
      return error.what();
    }
    return "";
  }

  server::Setup setup{.workers = 2, .optimizer = "sgd", .rows = {{.name = "rows", .width = 1}}};
  std::vector<Clock> images;
  std::vector<Outgoing> sent;
  ServerTables tables{0, 1 << 20, [this](Outgoing outgoing) { sent.push_back(std::move(outgoing)); }};
};

/// The number of the last push that the message acknowledges; none: it is another message.
std::optional<std::uint64_t> number_of(const Outgoing& outgoing) {
  const auto* const pushed = std::get_if<PushedRows>(&outgoing.message);
  return pushed == nullptr ? std::nullopt : std::optional(pushed->number);
}

/// A mark that ends no wait is answered to no worker, so that a meeting of N workers costs N messages, and not N
/// squared.
TEST(AServer, AcknowledgesAMeetingOnceToEachOf4096Workers) {
  constexpr std::size_t kWorkers = 4096;
  OneServer server(true);
  server.setup.workers = kWorkers;
  for (std::size_t worker = 0; worker < kWorkers; ++worker) server.set_up(worker, 1 + worker, true);
  EXPECT_EQ(server.sent.size(), kWorkers) << "a welcome each";
  std::uint64_t number = 0;
  for (const Clock steps : {0, 20}) {
    server.sent.clear();
    ++number;
    for (std::size_t worker = 0; worker < kWorkers; ++worker)
      server.tables.receive(worker,
                            MarkRows{.number = number, .steps = steps, .meets = true, .meeting = steps == 0 ? 1 : 0});
    EXPECT_EQ(server.sent.size(), kWorkers) << steps;
    for (const Outgoing& outgoing : server.sent) EXPECT_EQ(number_of(outgoing), number);
  }
  server.sent.clear();
  for (std::size_t worker = 1; worker < kWorkers; ++worker) server.tables.leave(worker);
  EXPECT_TRUE(server.sent.empty()) << "no worker waits";
}

TEST(AServer, TakesTheImageThatAProcessAllowsByItsFirstStep) {
  OneServer server(true);
  server.set_up(0, 1, true);
  server.set_up(1, 2, true);
  server.tables.receive(0, MarkRows{.number = 1, .steps = 20, .meets = true});
  server.set_up(1, 3, true);
  EXPECT_TRUE(server.images.empty());
  server.sent.clear();
  server.set_up(1, 3, true, 20);
  EXPECT_EQ(server.images, std::vector<Clock>{20});
  EXPECT_TRUE(std::ranges::any_of(server.sent, [](const Outgoing& outgoing) {
    return outgoing.worker == 0 && number_of(outgoing) == 1U;
  })) << "worker 0 waits for it";
}

TEST(AServer, RefusesAProcessThatReturnsAfterAnotherOneHasTakenItsPlace) {
  for (const bool rows_only : {false, true}) {
    OneServer server(rows_only);
    server.set_up(0, 7, true);
    EXPECT_NO_THROW(server.set_up(0, 7, false)) << "its stream broke";
    server.tables.leave(0);
    EXPECT_NO_THROW(server.set_up(0, 7, false)) << "it was given up";
    server.set_up(0, 8, true, 5);
    EXPECT_NE(server.refusal(0, 7).find("another one has taken its place as worker 0"), std::string::npos);
    EXPECT_THROW(server.tables.require_fitting(0, Hello{.process = 7, .setup = payload_of(server.setup.bytes())}),
                 Mismatch)
        << "before it gets the slot";
    EXPECT_EQ(server.refusal(0, 8), "");

    ServerTables other(0, 1 << 20, [](const Outgoing&) {});
    EXPECT_TRUE(server.tables.hand_over([&](const Record& record) { other.apply(record); }));
    EXPECT_THROW(other.receive(0, Hello{.process = 7, .setup = payload_of(server.setup.bytes())}), Mismatch)
        << "a server that continues from the replica";
  }
}

TEST(AServer, RefusesAProcessAfterTheRecordOfTheOtherOnesJoin) {
  OneServer server(false);
  ServerTables replica(0, 1 << 20, [](const Outgoing&) {});
  ServerTables source(
      0, 1 << 20, [](const Outgoing&) {}, [&](const Record& record) { replica.apply(record); });
  const auto set_up = [&](ServerTables& tables, std::uint64_t process, bool is_new) {
    tables.receive(
        0,
        Hello{.process = process, .is_new = is_new, .step = is_new ? 5 : 0, .setup = payload_of(server.setup.bytes())});
  };
  source.follow(0);
  set_up(source, 7, true);
  EXPECT_NO_THROW(set_up(replica, 7, false));
  set_up(source, 8, true);
  EXPECT_THROW(set_up(replica, 7, false), Mismatch);
  EXPECT_NO_THROW(set_up(replica, 8, false));
}

}  // namespace
}  // namespace syncopate::server
