// Rows on a server, and a worker's pulls and pushes of them: against a plain map in f64, and message by message.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "optim/reference.hpp"
#include "server/refusal.hpp"
#include "server/rows/row_table.hpp"
#include "server/rows/worker_rows.hpp"
#include "server/table/server_tables.hpp"
#include "syncopate/error.hpp"

namespace syncopate::server {
namespace {

constexpr std::size_t kMuch = std::size_t{1} << 30;

/// A message's body: ids, and for each of them a row whose floats are all `value`.
Payload pushed(const std::vector<std::uint64_t>& ids, std::size_t width, float value) {
  std::string body(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(std::uint64_t));
  const std::vector<float> rows(ids.size() * width, value);
  body.append(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(float));
  return payload_of(body);
}

Payload asked(const std::vector<std::uint64_t>& ids) { return pushed(ids, 0, 0); }

std::vector<float> floats_of(base::ConstBytes bytes) {
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), bytes.size());
  return floats;
}

/// Servers with tables of rows and their workers, whose messages arrive at once, unless a link is cut.
class RowJob {
 public:
  RowJob(std::vector<RowOptions> rows, std::size_t servers, std::size_t workers = 1)
      : setup_{.workers = workers, .servers = servers, .rows = std::move(rows)} {
    for (std::size_t server = 0; server < servers; ++server)
      servers_.push_back(std::make_unique<ServerTables>(server, kMuch, [this, server](const Outgoing& outgoing) {
        answers_.push_back({server, outgoing.worker, outgoing.message});
      }));
    for (std::size_t worker = 0; worker < workers; ++worker) {
      workers_.push_back(std::make_unique<WorkerRows>(setup_, [this, worker](Request request) {
        ++sent;
        if (!is_cut) requests_.push_back({request.server, worker, std::move(request.message)});
      }));
      for (auto& server : servers_) server->receive(worker, Hello{.is_new = true, .setup = payload_of(setup_.bytes())});
    }
  }
  /// Delivers everything that is on its way.
  void deliver() {
    while (!requests_.empty() || !answers_.empty()) {
      for (const auto& request : std::exchange(requests_, {}))
        servers_[request.server]->receive(request.worker, request.message);
      std::size_t bytes = 0;
      for (const auto& answer : answers_) bytes += body_bytes(answer.message);
      most_answers = std::max(most_answers, bytes);
      for (const auto& answer : std::exchange(answers_, {}))
        std::visit(
            [&](const auto& of_rows) {
              if constexpr (requires(WorkerRows & rows) { rows.receive(0, of_rows); })
                workers_[answer.worker]->receive(answer.server, of_rows);
            },
            answer.message);
    }
  }
  void push(std::size_t worker, std::size_t table, const std::vector<std::uint64_t>& ids,
            const std::vector<float>& gradients, double rate) {
    workers_[worker]->push(table, ids, gradients, rate);
    deliver();
  }
  std::vector<float> pull(std::size_t table, const std::vector<std::uint64_t>& ids) {
    std::vector<float> rows(ids.size() * setup_.rows[table].width);
    workers_[0]->pull(table, ids, rows);
    deliver();
    EXPECT_TRUE(workers_[0]->has_pulled());
    return rows;
  }
  WorkerRows& worker(std::size_t index) { return *workers_[index]; }
  ServerTables& server(std::size_t index) { return *servers_[index]; }

  std::size_t sent = 0;
  std::size_t most_answers = 0;  ///< bytes that the servers had sent and no worker had taken
  bool is_cut = false;

 private:
  template <class Message>
  struct Sent {
    std::size_t server, worker;
    Message message;
  };
  const server::Setup setup_;
  std::vector<Sent<WorkerMessage>> requests_;
  std::vector<Sent<ServerMessage>> answers_;
  std::vector<std::unique_ptr<ServerTables>> servers_;
  std::vector<std::unique_ptr<WorkerRows>> workers_;
};

TEST(Rows, BeginWithValuesOfTheirSeedTableAndIdOnAnyNumberOfServers) {
  const RowOptions options{.name = "users", .width = 5, .seed = 7, .scale = 0.5};
  RowOptions other = options;
  other.seed = 8;
  RowJob one({options, options, other}, 1), three({options, options, other}, 3);
  std::vector<std::uint64_t> ids{0, 1, ~std::uint64_t{0}, 1};
  for (std::uint64_t id = 0; id < 500; ++id) ids.push_back(id * 1'000'003);
  const std::vector<float> rows = one.pull(0, ids);
  EXPECT_EQ(rows, three.pull(0, ids));
  EXPECT_NE(rows, one.pull(1, ids)) << "tables differ";
  EXPECT_NE(rows, one.pull(2, ids)) << "seeds differ";
  EXPECT_TRUE(std::ranges::equal(std::span(rows).subspan(5, 5), std::span(rows).subspan(15, 5))) << "the same id twice";
  EXPECT_FALSE(std::ranges::equal(std::span(rows).first(5), std::span(rows).subspan(5, 5)));
  double sum = 0, squares = 0;
  for (const float value : rows) {
    EXPECT_TRUE(value >= -0.5F && value < 0.5F) << value;
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(rows.size());
  EXPECT_NEAR(sum / count, 0, 0.03);
  EXPECT_NEAR(squares / count, 0.25 / 3, 0.01);
  EXPECT_EQ(one.server(0).kept_bytes(), 0U) << "rows that were only read take no memory";
}

/// Random pushes of two workers, with ids that repeat within a call, against one Reference for each id.
void expect_reference(const std::string& rule, std::size_t width) {
  const test::Knobs knobs{.beta2 = 0.999, .epsilon = rule == "adagrad" ? 1e-10 : 1e-8};
  RowJob job(
      {{.name = "rows", .width = width, .rule = rule, .hyperparameters = {{"weight_decay", knobs.decay}}, .seed = 3}},
      3, 2);
  std::mt19937_64 random(width);
  std::uniform_int_distribution<std::uint64_t> id_of(0, 40);
  std::normal_distribution<float> normal;
  std::map<std::uint64_t, std::pair<test::Reference, std::uint64_t>> rows;
  for (int call = 0; call < 60; ++call) {
    std::vector<std::uint64_t> ids(1 + random() % 30);
    std::ranges::generate(ids, [&] { return id_of(random) << 32; });
    std::vector<float> gradients(ids.size() * width);
    std::ranges::generate(gradients, [&] { return normal(random); });
    const double rate = 0.05 / (1 + call);
    std::map<std::uint64_t, std::vector<float>> sums;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      auto& sum = sums[ids[i]];
      sum.resize(width);
      for (std::size_t j = 0; j < width; ++j) sum[j] += gradients[i * width + j];
    }
    for (const auto& [id, sum] : sums) {
      if (!rows.contains(id)) rows.emplace(id, std::pair(test::Reference(job.pull(0, {id}), knobs, false), 0));
      rows.at(id).first.step(rule, sum, rate, ++rows.at(id).second);
    }
    job.push(static_cast<std::size_t>(call) % 2, 0, ids, gradients, rate);
  }
  for (const auto& [id, row] : rows) {
    const std::vector<float> has = job.pull(0, {id});
    for (std::size_t i = 0; i < width; ++i) ASSERT_NEAR(has[i], row.first.w[i], 1e-5) << rule << " id " << id;
  }
}

TEST(Rows, FollowTheirRuleAndCountTheirOwnSteps) {
  for (const char* rule : {"sgd", "momentum", "adagrad", "adam", "adamw"})
    for (const std::size_t width : {1, 7, 64}) expect_reference(rule, width);
}

TEST(Rows, TravelInMessagesThatFit) {
  constexpr std::size_t kWidth = 1000, kRows = 2000;
  RowJob job({{.name = "rows", .width = kWidth, .scale = 0}, {.name = "wide", .width = kMostRowWidth, .scale = 0}}, 2);
  std::vector<std::uint64_t> ids(kRows);
  for (std::size_t i = 0; i < kRows; ++i) ids[i] = i;
  job.push(0, 0, ids, std::vector<float>(kRows * kWidth, -1.0F), 1);
  EXPECT_GT(job.sent, kRows * kWidth * sizeof(float) / kMostBodyBytes);
  EXPECT_EQ(job.pull(0, ids), std::vector<float>(kRows * kWidth, 1.0F));
  job.push(0, 1, {5}, std::vector<float>(kMostRowWidth, -2.0F), 1);
  EXPECT_EQ(job.pull(1, {5, 6}), [] {
    std::vector<float> rows(2 * kMostRowWidth);
    std::fill_n(rows.begin(), kMostRowWidth, 2.0F);
    return rows;
  }());
}

TEST(Rows, ArePushedOnceThoughRequestsAreLostAndRepeated) {
  RowJob job({{.name = "rows", .width = 2, .scale = 0}}, 1);
  const std::vector<float> gradient{-1, -1};
  job.push(0, 0, {9}, gradient, 1);
  job.is_cut = true;
  for (int times = 0; times < 3; ++times) job.push(0, 0, {9}, gradient, 1);
  EXPECT_FALSE(job.worker(0).is_acknowledged());
  job.is_cut = false;
  std::vector<float> rows(2);
  job.worker(0).push(0, std::vector<std::uint64_t>{9}, gradient, 1);  // comes before the lost ones, and is not applied
  job.worker(0).pull(0, std::vector<std::uint64_t>{9}, rows);         // nor answered without them
  job.deliver();
  EXPECT_FALSE(job.worker(0).has_pulled());
  job.worker(0).repeat(0);
  job.worker(0).repeat(0);
  job.deliver();
  EXPECT_TRUE(job.worker(0).has_pulled());
  EXPECT_TRUE(job.worker(0).is_acknowledged());
  EXPECT_EQ(rows, (std::vector<float>{5, 5}));
  EXPECT_EQ(job.pull(0, {9}), (std::vector<float>{5, 5}));
}

TEST(Rows, OfALargePullAreHeldByAServerAFewAtATime) {
  constexpr std::size_t kWidth = 256, kRows = 40'000;
  RowJob job({{.name = "rows", .width = kWidth, .seed = 3}, {.name = "wide", .width = kMostRowWidth}}, 1);
  std::vector<std::uint64_t> ids(kRows);
  for (std::size_t i = 0; i < kRows; ++i) ids[i] = i / 2 * 3;  // each comes twice
  const std::vector<float> rows = job.pull(0, ids);
  EXPECT_LE(job.most_answers, std::size_t{4} << 20);
  EXPECT_GT(job.most_answers, std::size_t{3} << 20) << "requests do not wait for each other";
  for (const std::size_t i : {std::size_t{0}, std::size_t{5001}, kRows - 1})
    EXPECT_EQ(job.pull(0, {ids[i]}), std::vector(rows.begin() + static_cast<std::ptrdiff_t>(i * kWidth),
                                                 rows.begin() + static_cast<std::ptrdiff_t>((i + 1) * kWidth)));
  ids.resize(100);
  job.pull(1, ids);
  EXPECT_LE(job.most_answers, std::size_t{8} << 20) << "rows that fill a message each";
}

TEST(Rows, OfALargePullComeThoughTheStreamBreaksInIt) {
  RowJob job({{.name = "rows", .width = 1024, .scale = 0}}, 2);
  std::vector<std::uint64_t> ids(5'000);
  std::iota(ids.begin(), ids.end(), 0);
  job.is_cut = true;
  std::vector<float> rows(ids.size() * 1024, 1.0F);
  job.worker(0).pull(0, ids, rows);
  job.is_cut = false;
  for (const std::size_t server : {0, 1}) job.worker(0).repeat(server);
  job.deliver();
  EXPECT_TRUE(job.worker(0).has_pulled());
  EXPECT_EQ(rows, std::vector<float>(rows.size()));
}

TEST(Rows, OfAnAbandonedPullAreNotWritten) {
  RowJob job({{.name = "rows", .width = 2, .scale = 0}}, 1);
  std::vector<float> rows{3, 3};
  job.worker(0).pull(0, std::vector<std::uint64_t>{9}, rows);
  job.worker(0).abandon();
  job.deliver();
  EXPECT_EQ(rows, (std::vector<float>{3, 3}));
  EXPECT_EQ(job.pull(0, {9}), (std::vector<float>{0, 0}));
}

/// One table of a server.
class OfRows : public testing::Test {
 protected:
  RowTable::Taken push(RowTable& table, std::size_t worker, std::uint64_t number, const std::vector<std::uint64_t>& ids,
                       float value = -1) {
    return table.push(worker, PushRows{.number = number, .rate = 1, .rows = pushed(ids, 3, value)});
  }
  std::vector<float> pull(RowTable& table, const std::vector<std::uint64_t>& ids) {
    const Payload rows = table.pull(asked(ids).bytes);
    return floats_of(rows.bytes);
  }

  const RowRules rules_{{.name = "rows", .width = 3, .rule = "adagrad"}, 0, {}};
  RowMemory memory_{kMuch};
  RowTable table_{rules_, 2, memory_};
};

TEST_F(OfRows, PushesAreTakenInTheOrderOfTheirNumbers) {
  EXPECT_EQ(push(table_, 0, 2, {1}), RowTable::Taken::early);
  EXPECT_EQ(push(table_, 0, 1, {1}), RowTable::Taken::applied);
  EXPECT_EQ(push(table_, 0, 1, {1}), RowTable::Taken::repeated);
  EXPECT_EQ(push(table_, 0, 2, {1}), RowTable::Taken::applied);
  EXPECT_EQ(push(table_, 1, 1, {1}), RowTable::Taken::applied) << "another worker";
  table_.marks().join(1, 0, 7);
  EXPECT_EQ(push(table_, 1, 1, {1}), RowTable::Taken::applied) << "another process";
  EXPECT_EQ(table_.marks().applied_of(0), 2U);
  EXPECT_EQ(table_.rows(), 1U);
}

TEST_F(OfRows, ImagesContinueWithTheSameBits) {
  std::vector<std::uint64_t> ids;
  for (std::uint64_t id = 0; id < 60'000; ++id) ids.push_back(id);
  for (std::uint64_t number = 1, at = 0; at < ids.size(); at += 20'000, ++number)
    EXPECT_EQ(
        push(table_, 0, number,
             {ids.begin() + static_cast<std::ptrdiff_t>(at), ids.begin() + static_cast<std::ptrdiff_t>(at) + 20'000}),
        RowTable::Taken::applied);
  RowMemory memory{kMuch};
  RowTable other(rules_, 2, memory);
  push(other, 1, 1, {77'777});
  std::size_t parts = 0;
  bool is_complete = false;
  table_.image([&](const Payload& bytes, std::uint64_t part, bool is_last) {
    EXPECT_EQ(part, parts++);
    EXPECT_LE(bytes.bytes.size(), kMostBodyBytes);
    EXPECT_FALSE(is_complete);
    is_complete = is_last;
    other.restore(bytes.bytes, part);
  });
  EXPECT_TRUE(is_complete);
  EXPECT_GT(parts, 2U);
  EXPECT_EQ(other.rows(), table_.rows());
  EXPECT_EQ(memory.used_bytes(), memory_.used_bytes());
  for (RowTable* table : {&table_, &other}) EXPECT_EQ(push(*table, 0, 4, {3, 99'999}, 0.3F), RowTable::Taken::applied);
  EXPECT_EQ(pull(other, {3, 5, 77'777, 99'999}), pull(table_, {3, 5, 77'777, 99'999}));
}

TEST_F(OfRows, AnImageStaysAsItIsThoughTheTableChanges) {
  EXPECT_EQ(push(table_, 0, 1, {1, 2}), RowTable::Taken::applied);
  std::vector<Payload> image;
  table_.image([&](Payload bytes, std::uint64_t, bool) { image.push_back(std::move(bytes)); });
  const std::vector<float> before = pull(table_, {1, 2, 3});
  EXPECT_EQ(push(table_, 0, 2, {2, 3}), RowTable::Taken::applied);
  RowMemory memory{kMuch};
  RowTable other(rules_, 2, memory);
  for (std::size_t part = 0; part < image.size(); ++part) other.restore(image[part].bytes, part);
  EXPECT_TRUE(other.is_whole());
  EXPECT_EQ(pull(other, {1, 2, 3}), before);
  EXPECT_EQ(other.rows(), 2U);
  EXPECT_NE(pull(table_, {1, 2, 3}), before);
}

TEST_F(OfRows, MalformedMessagesAreRefused) {
  const auto is_refused = [&](std::size_t bytes, double rate) {
    try {
      static_cast<void>(
          table_.push(0, PushRows{.number = 1, .rate = rate, .rows = payload_of(std::string(bytes, '\1'))}));
      return false;
    } catch (const Corrupt&) {
      return true;
    }
  };
  for (const std::size_t bytes : {0, 19, 21, 39}) EXPECT_TRUE(is_refused(bytes, 1)) << bytes;
  for (const double rate : {-1.0, std::nan(""), HUGE_VAL}) EXPECT_TRUE(is_refused(20, rate)) << rate;
  EXPECT_FALSE(is_refused(20, 0));
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{7}, std::size_t{9}, kMostBodyBytes})
    EXPECT_THROW(static_cast<void>(table_.pull(payload_of(std::string(bytes, 'x')).bytes)), Corrupt) << bytes;
  for (const std::size_t bytes : {0, 39, 41})
    EXPECT_THROW(
        static_cast<void>(table_.push(0, RestoreRows{.number = 1, .rows = payload_of(std::string(bytes, 'x'))})),
        Corrupt)
        << bytes;
  EXPECT_THROW(static_cast<void>(table_.push(0, MarkRows{.number = 1, .meets = true})), Corrupt)
      << "a meeting without a number";
  for (const auto& [bytes, part] : {std::pair{103, 0}, {105, 0}, {39, 1}, {1, 2}})
    EXPECT_THROW(table_.restore(payload_of(std::string(static_cast<std::size_t>(bytes), 'x')).bytes,
                                static_cast<std::uint64_t>(part)),
                 Corrupt)
        << bytes;
}

TEST_F(OfRows, ThatDoNotFitInTheMemoryAreRefusedAndChangeNothing) {
  push(table_, 0, 1, {1});
  RowMemory memory{3 * memory_.used_bytes()};
  RowTable table(rules_, 2, memory);
  EXPECT_EQ(push(table, 0, 1, {1, 1, 2}), RowTable::Taken::applied) << "a row that comes twice is one row";
  const std::vector<float> before = pull(table, {1, 2});
  EXPECT_THROW(static_cast<void>(push(table, 0, 2, {1, 3, 4})), Refusal);
  EXPECT_EQ(pull(table, {1, 2}), before);
  EXPECT_EQ(table.rows(), 2U);
  EXPECT_EQ(push(table, 0, 2, {1, 3}), RowTable::Taken::applied) << "there is room for one more";
  EXPECT_THROW(static_cast<void>(push(table, 0, 3, {4})), Refusal);
}

TEST(RowOptions, ThatAreNotAllowedAreRefused) {
  const auto refused = [](RowOptions options) {
    try {
      static_cast<void>(RowRules(options, 0, {}));
      return false;
    } catch (const Misuse&) {
      return true;
    }
  };
  EXPECT_FALSE(refused({.name = "rows", .width = kMostRowWidth, .scale = 0}));
  EXPECT_TRUE(refused({.name = "rows", .width = kMostRowWidth + 1}));
  EXPECT_TRUE(refused({.name = "rows", .width = 0}));
  EXPECT_TRUE(refused({.name = "rows", .width = 1, .rule = "lamb"}));
  EXPECT_TRUE(refused({.name = "rows", .width = 1, .rule = "none"}));
  EXPECT_TRUE(refused({.name = "rows", .width = 1, .hyperparameters = {{"momentum", 0.9}}}));
  EXPECT_TRUE(refused({.name = "rows", .width = 1, .scale = -1}));
  EXPECT_TRUE(refused({.name = "rows", .width = 1, .scale = std::nan("")}));
}

TEST(RowOptions, ArePartOfTheSetup) {
  server::Setup setup{
      .rows = {{.name = "a", .width = 3, .rule = "adam", .hyperparameters = {{"beta1", 0.5}}, .seed = 4, .scale = 2},
               {.name = "b", .width = 1}}};
  EXPECT_EQ(server::Setup::of(setup.bytes()).rows, setup.rows);
  EXPECT_EQ(difference(setup, setup), "");
  server::Setup other = setup;
  other.rows[1].width = 2;
  EXPECT_NE(difference(setup, other).find("table 1 of rows"), std::string::npos);
  other.rows.pop_back();
  EXPECT_NE(difference(setup, other).find("none"), std::string::npos);
}

/// All rows of a table, which no worker pushes meanwhile, by id.
std::map<std::uint64_t, std::pair<std::uint64_t, std::vector<float>>> visited(RowJob& job, std::size_t servers) {
  std::map<std::uint64_t, std::pair<std::uint64_t, std::vector<float>>> all;
  for (std::size_t server = 0; server < servers; ++server)
    for (std::size_t slab = 0, slabs = 1; slab < slabs; ++slab) {
      job.worker(0).visit(server, 0, slab);
      job.deliver();
      EXPECT_TRUE(job.worker(0).has_visited());
      const WorkerRows::Visited visited = job.worker(0).take_visited();
      slabs = visited.slabs;
      const std::size_t count = visited.rows.ids.size(), floats = count == 0 ? 0 : visited.rows.values.size() / count;
      EXPECT_EQ(visited.rows.steps.size(), count);
      for (std::size_t i = 0; i < count; ++i) {
        const auto* values = visited.rows.values.data() + i * floats;
        EXPECT_TRUE(
            all.emplace(visited.rows.ids[i], std::pair(visited.rows.steps[i], std::vector(values, values + floats)))
                .second)
            << "row " << visited.rows.ids[i] << " comes twice";
      }
    }
  return all;
}

/// Several slabs on each server; every row's state is that of its pushes, so that a job with another number of servers
/// continues with the same bits.
TEST(RowVisits, HaveEveryRowOnceAndAreRestoredOnAnotherNumberOfServers) {
  constexpr std::size_t kWidth = 64, kRows = 3000;
  const RowOptions options{.name = "rows", .width = kWidth, .rule = "adam", .seed = 3};
  RowJob one({options}, 3), other({options}, 2);
  EXPECT_TRUE(visited(one, 3).empty());
  std::vector<std::uint64_t> ids(kRows);
  for (std::size_t i = 0; i < kRows; ++i) ids[i] = i * 0x9E3779B97F4A7C15U;
  const std::vector<float> gradients(kRows * kWidth, 0.25F);
  one.push(0, 0, ids, gradients, 0.1);
  one.push(0, 0, {ids[5]}, std::vector<float>(kWidth, -3.0F), 0.1);
  const auto rows = visited(one, 3);
  ASSERT_EQ(rows.size(), kRows);
  KeptRows kept{.rule = "adam"};
  for (const auto& [id, row] : rows) {
    EXPECT_EQ(row.first, id == ids[5] ? 2U : 1U);
    EXPECT_EQ(std::vector(row.second.begin(), row.second.begin() + kWidth), one.pull(0, {id}));
    kept.ids.push_back(id);
    kept.steps.push_back(row.first);
    kept.values.insert(kept.values.end(), row.second.begin(), row.second.end());
  }
  other.worker(0).restore(0, kept);
  other.deliver();
  EXPECT_EQ(visited(other, 2), rows);
  other.push(0, 0, {ids[7]}, std::vector<float>(kWidth, 1.0F), 0.1);
  const std::vector<float> pushed = other.pull(0, {ids[7]});
  other.worker(0).restore(0, kept);
  other.deliver();
  EXPECT_EQ(other.pull(0, {ids[7]}), pushed) << "a row that a server has stays as it is";
  one.push(0, 0, {ids[7]}, std::vector<float>(kWidth, 1.0F), 0.1);
  EXPECT_EQ(visited(other, 2), visited(one, 3));

  kept.rule = "adamw";
  EXPECT_THROW(other.worker(0).restore(0, kept), Misuse);
  kept.rule = "adam";
  kept.steps.pop_back();
  EXPECT_THROW(other.worker(0).restore(0, kept), Misuse);
}

TEST(RowVisits, AreRepeatedOnAnotherStream) {
  RowJob job({{.name = "rows", .width = 2, .scale = 0}}, 1);
  job.push(0, 0, {9}, {-1, -1}, 1);
  job.is_cut = true;
  job.worker(0).begin_visit(0, 0);
  job.worker(0).visit(0, 0, 0);
  job.deliver();
  job.is_cut = false;
  EXPECT_FALSE(job.worker(0).has_met());
  EXPECT_FALSE(job.worker(0).has_room()) << "a worker that meets the others pushes nothing";
  EXPECT_FALSE(job.worker(0).has_visited());
  job.worker(0).repeat(0);
  job.worker(0).repeat(0);
  job.deliver();
  EXPECT_TRUE(job.worker(0).has_met());
  EXPECT_EQ(job.worker(0).take_visited().rows.ids, std::vector<std::uint64_t>{9});
}

TEST(RowMeetings, AreAcknowledgedWhenTheLastWorkerHasComeOrLeft) {
  RowJob job({{.name = "rows", .width = 2}}, 2, 3);
  for (const std::size_t worker : {0, 1}) job.worker(worker).begin_visit(0, 0);
  job.deliver();
  EXPECT_FALSE(job.worker(0).has_met());
  job.worker(0).repeat(1);
  job.deliver();
  EXPECT_FALSE(job.worker(0).has_met());
  job.worker(2).begin_visit(0, 0);
  job.deliver();
  for (const std::size_t worker : {0, 1, 2}) EXPECT_TRUE(job.worker(worker).has_met());
  for (const std::size_t worker : {0, 1}) job.worker(worker).end_visit(0);
  job.deliver();
  EXPECT_FALSE(job.worker(1).has_met());
  for (const std::size_t server : {0, 1}) job.server(server).leave(2);
  job.deliver();
  for (const std::size_t worker : {0, 1}) EXPECT_TRUE(job.worker(worker).has_met());
}

TEST(RowCalls, ThatDoNotFitAreRefused) {
  RowJob job({{.name = "rows", .width = 2}}, 1);
  std::vector<float> rows(4);
  const std::vector<std::uint64_t> ids{1, 2};
  EXPECT_THROW(job.worker(0).pull(1, ids, rows), Misuse);
  EXPECT_THROW(job.worker(0).pull(0, ids, std::span(rows).first(3)), Misuse);
  EXPECT_THROW(job.worker(0).push(0, std::span(ids).first(1), rows, 1), Misuse);
  EXPECT_THROW(job.worker(0).push(0, ids, rows, -1), Misuse);
  EXPECT_NO_THROW(job.worker(0).push(0, ids, rows, 0));
  for (const std::uint64_t number : {1, 2}) {
    const PushedRows answer{.number = number};
    if (number == 1)
      EXPECT_NO_THROW(job.worker(0).receive(0, answer));
    else
      EXPECT_THROW(job.worker(0).receive(0, answer), Corrupt);
  }
  EXPECT_THROW(job.worker(0).receive(0, PulledRows{.table = 1}), Corrupt);
  job.worker(0).visit(0, 0, 0);
  for (const auto& [count, slabs] : {std::pair{1U, 1U}, {0U, 1U}, {1U, 0U}, {1U << 30, 1U}})
    EXPECT_THROW(job.worker(0).receive(0, VisitedRows{.request = 1, .slabs = slabs, .rows = count}), Corrupt) << count;
  EXPECT_NO_THROW(job.worker(0).receive(0, VisitedRows{.request = 1}));
  EXPECT_THROW(job.server(0).receive(0, PullRows{.table = 1, .ids = asked({1})}), Corrupt);
}

}  // namespace
}  // namespace syncopate::server
