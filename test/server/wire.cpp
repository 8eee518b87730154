// Bytes from the wire and from disks: each check's last accepted value and first refused one.
#include "base/wire.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <tuple>
#include <typeinfo>

#include "server/dense/answer_stream.hpp"
#include "server/refusal.hpp"
#include "server/replication/record.hpp"
#include "server/sent_bytes.hpp"
#include "server/snapshot/snapshot_file.hpp"
#include "server/table/server_tables.hpp"
#include "server/table/worker_tables.hpp"
#include "syncopate/consistency.hpp"
#include "syncopate/error.hpp"
#include "syncopate/tooling/sealed_file.hpp"

namespace syncopate::server {
namespace {

/// A message's bytes, followed by `body` zeros.
std::string text_of(const WorkerMessage& message, std::size_t body = 0) {
  return std::string(server::text_of(sent_bytes(message))) + std::string(body, '\0');
}

template <class Call>
bool is_corrupt(const Call& call) {
  try {
    call();
    return false;
  } catch (const Corrupt&) {
    return true;
  }
}

bool is_taken(const std::string& bytes) {
  return !is_corrupt([&] { static_cast<void>(worker_message_of(payload_of(bytes))); });
}

constexpr std::size_t kFieldBytes = 8;  // of the kind, and of each field

/// Every alternative of a variant of messages, as its default.
template <class Message, class Use>
void each_kind(const Use& use) {
  [&]<std::size_t... kIndices>(std::index_sequence<kIndices...>) { (use(Message(std::in_place_index<kIndices>)), ...); }
  (std::make_index_sequence<std::variant_size_v<Message>>());
}

TEST(MessageBytes, AreTakenUpToTheirLimits) {
  EXPECT_TRUE(is_taken(text_of(Push{})));
  EXPECT_FALSE(is_taken(text_of(Push{}).substr(0, 8 * kFieldBytes - 1)));
  EXPECT_FALSE(is_taken(""));
  EXPECT_TRUE(is_taken(text_of(Push{}, kMostBodyBytes)));
  EXPECT_FALSE(is_taken(text_of(Push{}, kMostBodyBytes + 1)));
  EXPECT_FALSE(is_taken(text_of(Finish{}, 1))) << "it has no body";
  EXPECT_TRUE(is_taken(
      text_of(Push{.first = kMostClock, .last = kMostClock, .answer = {.least = kMostClock, .step = kMostClock}})));
  for (const Clock clock : {kMostClock + 1, Clock{-1}}) {
    EXPECT_FALSE(is_taken(text_of(Push{.first = clock}))) << clock;
    EXPECT_FALSE(is_taken(text_of(Push{.last = clock}))) << clock;
    EXPECT_FALSE(is_taken(text_of(Push{.answer = {.least = clock}}))) << clock;
    EXPECT_FALSE(is_taken(text_of(Push{.answer = {.step = clock}}))) << clock;
  }
  std::string bytes = text_of(Push{});
  bytes[kFieldBytes + sizeof(std::uint32_t)] = 1;
  EXPECT_FALSE(is_taken(bytes)) << "block 2^32";
  bytes = text_of(Hello{});
  bytes[3 * kFieldBytes] = 2;
  EXPECT_FALSE(is_taken(bytes)) << "is_new is 2";
}

TEST(MessageBytes, AreOfAKindThatTheSenderHas) {
  std::size_t of_workers = 0, of_servers = 0;
  for (int kind = 0; kind < 256; ++kind) {
    std::string bytes(kFieldBytes, static_cast<char>(kind));
    std::fill(bytes.begin() + 1, bytes.end(), '\0');
    bool from_worker = false, from_server = false;
    for (int fields = 0; fields < 12 && !from_worker && !from_server;
         ++fields, bytes += std::string(kFieldBytes, '\0')) {
      from_worker = is_taken(bytes);
      from_server = !is_corrupt([&] { static_cast<void>(server_message_of(payload_of(bytes))); });
    }
    EXPECT_FALSE(from_worker && from_server) << kind;
    of_workers += from_worker ? 1 : 0;
    of_servers += from_server ? 1 : 0;
  }
  EXPECT_EQ(of_workers, std::variant_size_v<WorkerMessage>);
  EXPECT_EQ(of_servers, std::variant_size_v<ServerMessage>);
}

TEST(MessageBytes, ReturnEveryField) {
  const Payload body = payload_of("bytes");
  const WorkerMessage sent = Push{.block = 1,
                                  .first = 2,
                                  .last = 3,
                                  .rate = 0.5,
                                  .answer = {.least = 5, .step = 6, .version = kExact},
                                  .update = body};
  const auto received = std::get<Push>(worker_message_of(sent_bytes(sent)));
  EXPECT_EQ(received.block, 1U);
  EXPECT_EQ(received.first, 2);
  EXPECT_EQ(received.last, 3);
  EXPECT_EQ(received.rate, 0.5);
  EXPECT_EQ(received.answer.least, 5);
  EXPECT_EQ(received.answer.step, 6);
  EXPECT_EQ(received.answer.version, kExact);
  EXPECT_EQ(server::text_of(received.update), "bytes");
  const ServerMessage refused = Refuse{ErrorKind::corrupt, body};
  EXPECT_EQ(std::get<Refuse>(server_message_of(sent_bytes(refused))).kind, ErrorKind::corrupt);
  std::string unknown(server::text_of(sent_bytes(refused)));
  unknown[kFieldBytes] = 100;
  EXPECT_THROW(static_cast<void>(server_message_of(payload_of(unknown))), Corrupt);
}

/// Initialises a member of any type.
struct Anything {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor): an aggregate converts it
};

/// The number of members of an aggregate.
template <class Kind, class... Given>
constexpr std::size_t members_of() {
  if constexpr (requires { Kind{Given()..., Anything()}; })
    return members_of<Kind, Given..., Anything>();
  else
    return sizeof...(Given);
}

template <class Kind>
std::size_t fields_of(Kind of) {
  return std::tuple_size_v<decltype(Kind::fields(of))>;
}

/// The terms of an answer are one member with three fields.
TEST(MessageBytes, HaveAllMembersOfTheirKinds) {
  const auto expect_all = [](const auto& message) {
    std::visit(
        []<class Kind>(const Kind& of) {
          const std::size_t nested = std::is_same_v<Kind, Push> || std::is_same_v<Kind, Fetch> ? 2 : 0;
          EXPECT_EQ(fields_of(of), members_of<Kind>() + nested) << typeid(Kind).name();
        },
        message);
  };
  each_kind<WorkerMessage>(expect_all);
  each_kind<ServerMessage>(expect_all);
  each_kind<RelayMessage>(expect_all);
  each_kind<Change>(expect_all);
}

TEST(MessageBytes, OfEveryKindComeBack) {
  each_kind<WorkerMessage>([](const WorkerMessage& message) {
    const Payload bytes = sent_bytes(message);
    EXPECT_EQ(worker_message_of(bytes).index(), message.index());
  });
  each_kind<ServerMessage>(
      [](const ServerMessage& message) { EXPECT_EQ(server_message_of(sent_bytes(message)).index(), message.index()); });
  each_kind<RelayMessage>(
      [](const RelayMessage& message) { EXPECT_EQ(relay_message_of(sent_bytes(message)).index(), message.index()); });
  each_kind<Change>([](const Change& change) {
    const RelayMessage part = RecordPart{.sequence = 7, .is_last = false, .worker = 3, .change = change};
    const auto received = std::get<RecordPart>(relay_message_of(sent_bytes(part)));
    EXPECT_EQ(received.change.index(), change.index());
    EXPECT_EQ(received.sequence, 7U);
    EXPECT_EQ(received.worker, 3U);
    EXPECT_FALSE(received.is_last);
  });
}

TEST(RecordParts, AreJoinedUpToTheBytesOfARecord) {
  const auto part_of = [](std::size_t bytes, bool is_last) {
    return RecordPart{.is_last = is_last, .change = change::Image{.image = payload_of(std::string(bytes, 'x'))}};
  };
  Record record;
  RecordReader reader(10);
  EXPECT_FALSE(reader.add(part_of(6, false), record));
  EXPECT_TRUE(reader.add(part_of(4, true), record));
  EXPECT_EQ(std::get<change::Image>(record.change).image.bytes.size(), 10U);
  EXPECT_THROW(static_cast<void>(RecordReader(10).add(part_of(11, true), record)), Corrupt);
  RecordReader another(10);
  EXPECT_FALSE(another.add(part_of(6, false), record));
  EXPECT_THROW(static_cast<void>(another.add(part_of(5, true), record)), Corrupt);
}

TEST(AnswerPackets, AreTakenUpToTheEndOfTheBody) {
  const auto packets = [](std::uint32_t length, std::size_t bytes) {
    std::string body(4 + bytes, 'x');
    std::memcpy(body.data(), &length, sizeof length);
    return packets_of(std::as_bytes(std::span(body))).size();
  };
  EXPECT_EQ(packets(3, 3), 1U);
  EXPECT_EQ(packets(0, 0), 1U);
  for (const std::uint32_t length : {4U, 7U, 8U, 0xffffffffU}) EXPECT_THROW(packets(length, 3), Corrupt) << length;
  const std::string cut(3, '\0');
  EXPECT_THROW(static_cast<void>(packets_of(std::as_bytes(std::span(cut)))), Corrupt) << "a length that is cut off";
}

/// The weights that a server shows, of one table whose answers are coded.
class ShownOf final {
 public:
  ShownOf(std::size_t elements, const std::string& codec)
      : setup_{.tables = {{"table", elements}}, .coding = {.dense_below = 0}, .answers = codec}, weights_(elements) {
    advance(1);
  }
  void advance(int versions) {
    for (; versions > 0; --versions) {
      weights_[0] += 1;
      shown.changed();
      shown.advance(weights_);
    }
  }
  /// The number of packets that lead a worker on from this version; empty: it gets all weights.
  std::optional<std::size_t> packets_from(std::uint64_t version) {
    Weights message;
    shown.answer(weights_, version, message);
    if (message.is_coded) return packets_of(message.values.bytes).size();
    EXPECT_EQ(message.values.bytes.size(), weights_.size() * sizeof(float));
    return std::nullopt;
  }

 private:
  const server::Setup setup_;
  const JobRules rules_{setup_};
  std::vector<float> weights_;

 public:
  AnswerStream shown{rules_, blocks_of(setup_).front()};
};

TEST(AnswerPackets, AreKeptUpToTheirNumber) {
  constexpr std::size_t kShownElements = 4000;
  ShownOf of(kShownElements, "topk:0.001");
  of.advance(kMostPackets);
  EXPECT_EQ(of.packets_from(1), kMostPackets);
  of.advance(1);
  const std::uint64_t version = of.shown.version();
  EXPECT_EQ(of.packets_from(1), std::nullopt);
  EXPECT_EQ(of.packets_from(2), kMostPackets);
  EXPECT_EQ(of.packets_from(version), 0U);
  EXPECT_EQ(of.packets_from(version + 1), std::nullopt);

  base::WireWriter writer;
  of.shown.write_to(writer);
  std::string image = writer.take();
  const auto is_restored = [&] {
    ShownOf other(kShownElements, "topk:0.001");
    base::WireReader reader(image);
    try {
      other.shown.read_from(reader);
      reader.end();
      return other.packets_from(2) == kMostPackets;
    } catch (const Corrupt&) {
      return false;
    }
  };
  EXPECT_TRUE(is_restored());
  image[8 + 1 + 4 + kShownElements * sizeof(float)] =
      kMostPackets + 1;  // their number follows version, flag and weights
  image.append(4, '\0');
  EXPECT_FALSE(is_restored()) << "one packet too many";
}

// A packet of n elements in fp16 takes 2 n bytes and 4 for its length; the weights take 4 n.
TEST(AnswerPackets, AreShorterThanTheWeights) {
  ShownOf equal(2, "fp16"), longer(3, "fp16");
  equal.advance(1);
  longer.advance(1);
  EXPECT_EQ(equal.packets_from(1), std::nullopt);
  EXPECT_EQ(longer.packets_from(1), 1U);
}

TEST(SetupBytes, AreTakenUpToTheirLimits) {
  const auto is_setup = [](const server::Setup& setup) {
    try {
      return server::Setup::of(setup.bytes()).workers == setup.workers;
    } catch (const Corrupt&) {
      return false;
    }
  };
  const server::Setup usual{.tables = {{"table", 4}}};
  server::Setup setup = usual;
  setup.workers = kMostWorkers;
  setup.servers = kMostWorkers;
  setup.tables[0].elements = kMostTableElements;
  EXPECT_TRUE(is_setup(setup));
  setup.workers = kMostWorkers + 1;
  EXPECT_FALSE(is_setup(setup));
  setup = usual;
  setup.servers = kMostWorkers + 1;
  EXPECT_FALSE(is_setup(setup));
  setup = usual;
  setup.tables[0].elements = kMostTableElements + 1;
  EXPECT_FALSE(is_setup(setup));
  std::string bytes = usual.bytes();
  bytes += '\0';
  EXPECT_THROW(static_cast<void>(server::Setup::of(bytes)), Corrupt) << "a byte follows";
  bytes.resize(bytes.size() - 2);
  EXPECT_THROW(static_cast<void>(server::Setup::of(bytes)), Corrupt) << "a byte is missing";
}

TEST(SetupBytes, HaveTermsUpToTheirLimits) {
  const auto has_terms = [](std::size_t workers, Clock first_step) {
    try {
      return JobRules({.tables = {{"table", 4}}, .workers = workers, .first_step = first_step}).workers == workers;
    } catch (const Misuse&) {
      return false;
    }
  };
  constexpr Clock kMostFirstStep = Clock{1} << 60;
  EXPECT_TRUE(has_terms(1, 0));
  EXPECT_FALSE(has_terms(0, 0));
  EXPECT_TRUE(has_terms(kMostWorkers, kMostFirstStep));
  EXPECT_FALSE(has_terms(kMostWorkers + 1, 0));
  EXPECT_FALSE(has_terms(1, kMostFirstStep + 1));
  EXPECT_FALSE(has_terms(1, -1));
}

/// A block of four elements after one step of its only worker.
class AfterOneStep final {
 public:
  explicit AfterOneStep(const server::Setup& setup) : rules_(setup) {
    block.initialise(std::as_bytes(std::span(values_)), 0);
    step(0);
  }
  void step(Clock first) {
    block.receive(0, Push{.first = first,
                          .last = first + 1,
                          .rate = 1,
                          .answer = {.least = first + 1},
                          .update = {nullptr, std::as_bytes(std::span(values_))}});
  }

 private:
  const JobRules rules_;
  const std::vector<float> values_{1, 2, 3, 4};

 public:
  ServerBlock block{rules_, Block{.elements = {0, 4}}, false};
};

TEST(BlockImages, ContinueFromTheirStepAndNoOther) {
  for (const char* consistency : {"bsp", "tap"})
    for (const Clock step : {0, 1, 2}) {
      const server::Setup setup{.tables = {{"table", 4}}, .consistency = consistency, .optimizer = "sgd"};
      AfterOneStep before(setup), after(setup);
      const Payload image = before.block.image();
      after.block.restore(image.bytes);
      const bool is_right = step == 1 || (step == 0 && std::string(consistency) == "tap");
      EXPECT_EQ(is_corrupt([&] { after.block.begin_again(step); }), !is_right) << consistency << step;
    }
}

TEST(BlockImages, HaveTheOptimizersStateFromTheFirstStepOn) {
  const server::Setup setup{.tables = {{"table", 4}}, .optimizer = "momentum"};
  AfterOneStep one(setup), other(setup);
  other.step(1);
  const Payload image = one.block.image();
  other.block.restore(image.bytes);
  one.step(1);
  other.step(1);
  EXPECT_TRUE(std::ranges::equal(one.block.values(), other.block.values()));
}

TEST(BlockImages, HaveTheStateThatAJobBeginsWith) {
  const server::Setup setup{.tables = {{"table", 4}}, .optimizer = "momentum"};
  const JobRules rules(setup);
  const std::vector<float> weights(4), velocity{1, 2, 3, 4};
  ServerBlock one(rules, Block{.elements = {0, 4}}, false), other(rules, Block{.elements = {0, 4}}, false);
  one.initialise(std::as_bytes(std::span(velocity)), 1);
  one.initialise(std::as_bytes(std::span(weights)), 0);
  const Payload image = one.image();
  other.restore(image.bytes);
  other.receive(0, Push{.last = 1, .rate = 1});
  EXPECT_EQ(other.values()[3], -3.6F) << "a step without a gradient moves by 0.9 of the velocity";
}

TEST(BlockParts, AreThoseThatTheOptimizerKeeps) {
  const std::vector<float> values(4);
  const std::map<std::string, std::size_t> states{{"sgd", 0}, {"momentum", 1}, {"adam", 2}};
  for (const auto& [optimizer, kept] : states) {
    AfterOneStep of({.tables = {{"table", 4}}, .optimizer = optimizer});
    for (const std::uint64_t part : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3}, kKept}) {
      const auto initialise = [&] { of.block.initialise(std::as_bytes(std::span(values)), part); };
      EXPECT_EQ(is_corrupt(initialise), part > kept) << optimizer << part;
    }
  }
}

TEST(Images, AreTakenOnceAStepAndRestoredForAllBlocks) {
  const server::Setup setup{.tables = {{"front", 4}, {"back", 4}}, .optimizer = "sgd"};
  const std::vector<float> values(4);
  std::vector<std::pair<Clock, std::uint32_t>> taken;
  std::vector<Payload> images;
  ServerTables tables(0, 1 << 20, [](const Outgoing&) {});
  tables.take_images(1, [&](ServerTables::Image image) {
    taken.emplace_back(image.step, static_cast<std::uint32_t>(image.piece));
    images.push_back(image.parts.at(0));
  });
  const Payload body{nullptr, std::as_bytes(std::span(values))};
  tables.receive(0, Hello{.is_new = true, .setup = payload_of(setup.bytes())});
  for (const std::uint32_t block : {0, 1}) {
    tables.receive(0, FirstValues{.block = block, .values = body});
    for (int times = 0; times < 2; ++times)
      tables.receive(0, Push{.block = block, .last = 1, .rate = 1, .answer = {.least = 1}, .update = body});
  }
  using Taken = std::vector<std::pair<Clock, std::uint32_t>>;
  EXPECT_EQ(taken, (Taken{{1, 0}, {1, 1}}));
  const auto restore = [&](std::size_t count) {
    std::vector<Payload> given = images;
    given.resize(count, images.at(0));
    ServerTables(0, 1 << 20, [](const Outgoing&) {}).restore(setup, 1, given, "a snapshot");
  };
  EXPECT_NO_THROW(restore(2));
  for (const std::size_t count : {1, 3}) EXPECT_THROW(restore(count), Corrupt) << count;
}

/// A member may choose the step: the work does not grow with it.
TEST(Setups, AtAnyStepAreAcceptedAtOnce) {
  constexpr Clock kFar = Clock{1} << 61;
  const std::vector<float> values(4);
  const Payload body{nullptr, std::as_bytes(std::span(values))};
  for (const char* optimizer : {"sgd", "lars"}) {
    const server::Setup setup{.tables = {{"table", 4}}, .optimizer = optimizer};
    Clock least = 0;
    ServerTables tables(0, 1 << 20, [&](const Outgoing& sent) {
      if (const auto* const weights = std::get_if<Weights>(&sent.message)) least = std::max(least, weights->least);
    });
    tables.receive(0, Hello{.is_new = true, .step = kFar, .setup = payload_of(setup.bytes())});
    tables.receive(0, FirstValues{.values = body});
    const Clock end = kFar + kFar / 2;
    tables.receive(0, Push{.first = kFar, .last = end, .rate = 1, .answer = {.least = end}, .update = body});
    tables.receive(0, Fetch{.answer = {.least = end}});
    EXPECT_EQ(least, end) << optimizer;
  }
}

TEST(Setups, OfTooManyBlocksAreRefused) {
  const server::Setup setup{.tables = std::vector<TableShape>(70'000, {"", 8192}), .servers = 4096};
  EXPECT_THROW(static_cast<void>(blocks_of(setup)), Misuse);
}

/// A server's tables that received the setup of two workers and one block of four elements.
class Replica : public testing::Test {
 protected:
  Replica() {
    apply({.sequence = 1, .change = change::SetUp{.setup = payload_of(setup_.bytes())}});
    source_.receive(0, Hello{.is_new = true, .setup = payload_of(setup_.bytes())});
    static_cast<void>(source_.hand_over([&](const Record& record) {
      if (!std::holds_alternative<change::Image>(record.change)) return;
      Record image = record;
      image.sequence = 2;
      apply(image);
    }));
  }
  std::uint64_t apply(const Record& record) { return tables_.apply(record); }

  const server::Setup setup_{.tables = {{"table", 4}}, .workers = 2, .optimizer = "sgd"};
  ServerTables source_{0, 1 << 20, [](const Outgoing&) {}};
  ServerTables tables_{0, 1 << 20, [](const Outgoing&) {}};
};

TEST_F(Replica, TakesRecordsOfItsJobInTheirOrder) {
  ASSERT_EQ(apply({.sequence = 3, .worker = 1, .change = change::Leave{}}), 3U);
  EXPECT_EQ(tables_.departed(), std::vector<std::size_t>{1});
  EXPECT_EQ(apply({.sequence = 3, .worker = 1, .change = change::ComeBack{}}), 3U) << "it has come before";
  EXPECT_EQ(tables_.departed(), std::vector<std::size_t>{1}) << "and is not applied again";
  EXPECT_THROW(static_cast<void>(apply({.sequence = 5, .worker = 1, .change = change::ComeBack{}})), Corrupt)
      << "a gap";
  EXPECT_THROW(static_cast<void>(apply({.sequence = 4, .worker = 2, .change = change::Leave{}})), Corrupt);
  EXPECT_THROW(static_cast<void>(apply({.sequence = 4, .change = change::Show{1}})), Corrupt);
  EXPECT_THROW(static_cast<void>(apply({.sequence = 4, .change = change::FinishStep{}})), Corrupt)
      << "its step is not complete";
  EXPECT_EQ(apply({.sequence = 4, .worker = 1, .change = change::ComeBack{}}), 4U);
  EXPECT_TRUE(tables_.departed().empty());
}

TEST_F(Replica, TakesImagesOfItsBlocksLengthOnly) {
  const auto image_of = [](std::size_t elements) {
    const server::Setup setup{.tables = {{"table", elements}}, .workers = 2, .optimizer = "sgd"};
    const std::vector<float> weights(elements, 1.0F);
    ServerTables tables(0, 1 << 20, [](const Outgoing&) {});
    tables.receive(0, Hello{.is_new = true, .setup = payload_of(setup.bytes())});
    tables.receive(0, FirstValues{.values = {nullptr, std::as_bytes(std::span(weights))}});
    Record image;
    static_cast<void>(tables.hand_over([&](const Record& record) {
      if (std::holds_alternative<change::Image>(record.change)) image = record;
    }));
    image.sequence = 3;
    return image;
  };
  for (const std::size_t elements : {3, 5}) EXPECT_THROW(static_cast<void>(apply(image_of(elements))), Corrupt);
  EXPECT_EQ(apply(image_of(4)), 3U);
}

TEST(SnapshotFile, IsOfAServerOfItsJobAndOfAStepThatWasMade) {
  const std::string file = std::filesystem::temp_directory_path() / fmt::format("syncopate-wire-{}.snapshot", getpid());
  const auto is_read = [&](std::size_t server, Clock step) {
    write_snapshot(file, {.server = server, .step = step, .setup = {.tables = {{"table", 4}}, .servers = 2}});
    try {
      return read_snapshot(file).step == step;
    } catch (const Corrupt&) {
      return false;
    }
  };
  EXPECT_TRUE(is_read(1, 1));
  EXPECT_FALSE(is_read(2, 1)) << "the job has servers 0 and 1";
  EXPECT_FALSE(is_read(0, 0));
  EXPECT_FALSE(is_read(0, -1));
  std::filesystem::remove(file);
}

TEST(SnapshotFile, HasWholeImages) {
  const std::string file =
      std::filesystem::temp_directory_path() / fmt::format("syncopate-image-{}.snapshot", getpid());
  const auto images_of = [&](std::uint64_t length, std::size_t bytes, std::size_t length_bytes = 8) {
    const server::Setup setup{.tables = {{"table", 4}}};
    base::WireWriter header;
    header.number(std::uint64_t{0});
    header.number(Clock{1});
    header.text(setup.bytes(), kMostBodyBytes);
    std::string payload(8, '\0');
    std::memcpy(payload.data(), &length, sizeof length);
    payload = payload.substr(0, length_bytes) + std::string(bytes, 'x');
    const auto part = std::as_bytes(std::span(payload));
    write_sealed(file, "SYNCSNP3", header.take(), {&part, 1});
    try {
      return static_cast<int>(read_snapshot(file).images.size());
    } catch (const Corrupt&) {
      return -1;
    }
  };
  EXPECT_EQ(images_of(3, 3), 1);
  EXPECT_EQ(images_of(4, 3), -1);
  EXPECT_EQ(images_of(0, 0), 1);
  EXPECT_EQ(images_of(0, 0, 7), -1);
  std::filesystem::remove(file);
}

TEST(Job, IsTakenByAServerThatItHasRoomFor) {
  const server::Setup setup{.tables = {{"table", 1000}}, .workers = 2, .servers = 2, .optimizer = "sgd"};
  const Hello hello{.is_new = true, .setup = payload_of(setup.bytes())};
  // Weights, their copy, and an update of each of two workers: 4 copies of 1000 elements on two servers.
  constexpr std::size_t kNeeded = 4 * 4 * 1000 / 2;
  const auto receive = [&](std::size_t server, std::size_t memory_bytes, std::size_t worker) {
    ServerTables tables(server, memory_bytes, [](const Outgoing&) {});
    tables.receive(worker, hello);
  };
  EXPECT_NO_THROW(receive(1, kNeeded, 1));
  EXPECT_THROW(receive(1, kNeeded - 1, 1), Refusal) << "one byte too few";
  EXPECT_THROW(receive(2, kNeeded, 1), Refusal) << "the job has servers 0 and 1";
  EXPECT_THROW(receive(1, kNeeded, 2), Refusal) << "the job has workers 0 and 1";
}

TEST(Setup, WithTooManyNamesSaysWhatIsAllowedAndWhatToDo) {
  server::Setup setup;
  for (int i = 0; i < 100'000; ++i) setup.tables.push_back({"t12345", 1});
  try {
    static_cast<void>(setup.bytes());
    FAIL() << "it was written";
  } catch (const Misuse& misuse) {
    const std::string text = misuse.what();
    EXPECT_TRUE(text.starts_with("the setup of this job, with the names of 100000 tables and 0 tables of rows, takes "))
        << text;
    EXPECT_TRUE(
        text.ends_with("; allowed: at most 1048576; use shorter names, or fewer tables: one for several tensors"))
        << text;
  }
  setup.tables.resize(50'000);
  EXPECT_LE(setup.bytes().size(), kMostBodyBytes);
}

/// A worker that comes changes the clocks, and so asks the model about another worker.
TEST(Job, BlamesNoWorkerThatComesForAValueOfItsConsistencyModel) {
  bool is_wrong = false;
  const Consistency model{.name = "wrong",
                          .rule = {[](const void* wrong, std::span<const double>) {
                                     return Rule{.staleness = 0, .last_step = [wrong](const ServerView&) -> Clock {
                                                   if (*static_cast<const bool*>(wrong)) throw Misuse("wrong: 'far'");
                                                   return 0;
                                                 }};
                                   },
                                   &is_wrong}};
  const Catalogue mine = Catalogue::standard().with(model);
  const server::Setup setup{.tables = {{"table", 4}}, .workers = 2, .consistency = "wrong", .optimizer = "sgd"};
  ServerTables tables(
      0, std::size_t{1} << 20, [](const Outgoing&) {}, nullptr, mine);
  const Hello hello{.process = 1, .is_new = true, .setup = payload_of(setup.bytes())};
  tables.receive(0, hello);
  tables.receive(0, FirstValues{.values = payload_of(std::string(16, '\0'))});
  tables.receive(0, Fetch{.answer = {.least = 1, .step = 1}});
  is_wrong = true;
  EXPECT_THROW(tables.receive(1, hello), Misuse);
}

TEST(WorkerMessages, ThatNoServerSendsAreRefused) {
  const server::Setup setup{.tables = {{"table", 4}}, .optimizer = "sgd"};
  std::vector<float> weights(4);
  WorkerTables tables(setup, 0, {Buffer(std::span(weights))}, [](const auto&) {});
  tables.begin({});
  const auto answer = [](std::uint32_t block) {
    return Weights{.block = block, .values = payload_of(std::string(16, '\0'))};
  };
  EXPECT_THROW(tables.receive(0, answer(1)), Corrupt) << "there is one block";
  EXPECT_THROW(tables.receive(0, Refuse{}), Corrupt);
  EXPECT_THROW(tables.receive(0, StatusReport{}), Corrupt);
  EXPECT_NO_THROW(tables.receive(0, answer(0)));
}

}  // namespace
}  // namespace syncopate::server
