// Catalogues of workers and servers: a job's own components, and a server that lacks one.
#include "syncopate/catalogue.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "service/job.hpp"
#include "syncopate/consistency.hpp"
#include "syncopate/error.hpp"
#include "syncopate/placement.hpp"
#include "syncopate/rule.hpp"

namespace syncopate {
namespace {

using namespace test;

/// All tables on the last server.
constexpr server::Placement kLast{
    .name = "last",
    .place =
        [](const server::Demand& demand) {
          std::vector<server::Shard> shards;
          for (std::size_t table = 0; table < demand.table_bytes.size(); ++table)
            if (demand.table_bytes[table] > 0)
              shards.push_back({table, 0, demand.table_bytes[table], demand.servers - 1});
          return shards;
        },
    .most_bytes =
        [](const server::Demand& demand) {
          double bytes = 0;
          for (const std::size_t table : demand.table_bytes) bytes += static_cast<double>(table);
          return bytes;
        },
};

/// Nowhere: breaks the law of placements.
constexpr server::Placement kNowhere{.name = "nowhere",
                                     .place = [](const server::Demand&) { return std::vector<server::Shard>{}; },
                                     .most_bytes = [](const server::Demand&) { return 0.0; }};

constexpr Parameter kSteps[] = {{"steps", 0, 100, true}};
constexpr server::Consistency kLate{
    .name = "late", .parameter = "1", .parameters = kSteps, .rule = [](std::span<const double> numbers) {
      return server::Rule{.staleness = static_cast<server::Clock>(numbers[0])};
    }};

constexpr optim::Rule kSign{
    .name = "sign", .takes = {}, .update = [](const optim::Step& step, const optim::TensorSlice& part) {
      for (std::size_t i = 0; i < part.size(); ++i) {
        part.weights[i] -= part.gradient[i] > 0 ? step.rate() : -step.rate();
        part.gradient[i] = 0;
      }
    }};

TEST(ServerCatalogue, GivesAJobItsOwnComponents) {
  const Catalogue mine = Catalogue::standard().with(kLast).with(kLate).with(kSign);
  for (const char* consistency : {"bsp", "late:2"}) {
    Servers servers(2, {.catalogue = mine});
    const auto all = programs(
        servers,
        {.catalogue = mine, .workers = 2, .placement = "last", .consistency = consistency, .optimizer = "sign"});
    run_all(all, 6);
    EXPECT_EQ(all[1]->weights(1), all[0]->weights(1)) << consistency;
    EXPECT_EQ(servers[0].status().kept_bytes, 0U) << consistency;
    EXPECT_EQ(servers[1].status().kept_bytes, (37 + test::kLarge) * sizeof(float)) << consistency;
  }
}

TEST(ServerCatalogue, UpdatesRowsByARuleThatTakesNoDecay) {
  const Catalogue mine = Catalogue::standard().with(kSign);
  const Servers servers(1, {.catalogue = mine});
  const auto worker = TableWorker::connect({.catalogue = mine, .servers = servers.addresses()});
  worker->create_rows({.name = "rows", .width = 2, .rule = "sign", .scale = 0});
  worker->start();
  const std::uint64_t id = 3;
  std::vector<float> row{5, -5};
  worker->push_rows(0, std::span(&id, 1), row, 0.5);
  worker->clock(0);
  worker->pull_rows(0, std::span(&id, 1), row);
  EXPECT_EQ(row, (std::vector<float>{-0.5F, 0.5F}));
  worker->finish();
}

/// The Mismatch of a worker whose servers have the standard catalogue.
std::string refusal_of(const WorkerOptions& options) {
  const Servers servers(2);
  try {
    Program(servers, options).start();
  } catch (const Mismatch& error) {
    return error.what();
  }
  return "it was accepted";
}

TEST(ServerCatalogue, AComponentThatAServerLacksIsAMismatchThatNamesIt) {
  const Catalogue mine = Catalogue::standard().with(kLast).with(kLate).with(kSign);
  for (const auto& [options, name] : {std::pair(WorkerOptions{.catalogue = mine, .placement = "last"}, "'last'"),
                                      std::pair(WorkerOptions{.catalogue = mine, .consistency = "late:3"}, "'late'"),
                                      std::pair(WorkerOptions{.catalogue = mine, .optimizer = "sign"}, "'sign'")}) {
    const std::string refusal = refusal_of(options);
    EXPECT_NE(refusal.find(name), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("server "), std::string::npos) << refusal;
  }
}

TEST(ServerCatalogue, APlacementThatBreaksItsLawsIsAMisuse) {
  const Catalogue mine = Catalogue::standard().with(kNowhere);
  const Servers servers(1, {.catalogue = mine});
  Program program(servers, {.catalogue = mine, .placement = "nowhere"});
  EXPECT_THROW(program.start(), Misuse);
}

/// A model with a value of its own: its servers fail at this step.
struct Failing {
  server::Clock at = 0;
  server::Consistency model{.name = "failing", .rule = {rule, this}};

  static server::Rule rule(const void* self, std::span<const double> /*numbers*/) {
    const server::Clock at = static_cast<const Failing*>(self)->at;
    return {.staleness = 0, .last_step = [at](const server::ServerView& view) -> server::Clock {
              if (view.least >= at) throw std::logic_error("no further than step " + std::to_string(at));
              return 0;
            }};
  }
};

TEST(ServerCatalogue, AnExceptionOfAComponentEndsTheJobOfEveryWorker) {
  const Failing failing{.at = 3};
  const Catalogue mine = Catalogue::standard().with(failing.model);
  Servers servers(1, {.catalogue = mine});
  const auto all = programs(servers, {.catalogue = mine, .workers = 2, .consistency = "failing"});
  std::vector<std::string> errors(2);
  std::vector<std::jthread> workers;
  for (std::size_t worker = 0; worker < 2; ++worker)
    workers.emplace_back([&, worker] {
      try {
        all[worker]->start();
        for (int step = 0; step < 100; ++step) all[worker]->step();
      } catch (const RemoteFailure& error) {
        errors[worker] = error.what();
      }
    });
  workers.clear();
  for (const std::string& error : errors) EXPECT_NE(error.find("no further than step 3"), std::string::npos) << error;
  EXPECT_THROW(static_cast<void>(servers[0].wait_for_end(std::chrono::seconds(1))), std::logic_error);
}

/// A rule that finds something wrong when it updates.
constexpr optim::Rule kWrong{
    .name = "wrong", .takes = {}, .update = [](const optim::Step& /*step*/, const optim::TensorSlice& /*part*/) {
      throw Misuse("optimizer wrong still uses an array after its update; allowed: copies");
    }};

TEST(ServerCatalogue, AWrongRuleOfRowsEndsTheJobOfEveryWorker) {
  const Catalogue mine = Catalogue::standard().with(kWrong);
  Servers servers(1, {.catalogue = mine});
  std::vector<std::string> errors(2);
  std::vector<std::jthread> workers;
  for (std::size_t worker = 0; worker < 2; ++worker)
    workers.emplace_back([&, worker] {
      try {
        const auto own = TableWorker::connect({.catalogue = mine,
                                               .servers = servers.addresses(),
                                               .worker = worker,
                                               .workers = 2,
                                               .timeout = std::chrono::seconds(10)});
        own->create_rows({.name = "rows", .width = 2, .rule = "wrong", .scale = 0});
        own->start();
        const std::uint64_t id = 3;
        std::vector<float> row{5, -5};
        if (worker == 0) own->push_rows(0, std::span(&id, 1), row, 0.5);
        for (server::Clock step = 0; step < 1000; ++step) {
          own->clock(step);
          own->pull_rows(0, std::span(&id, 1), row);
        }
      } catch (const RemoteFailure& error) {
        errors[worker] = error.what();
      } catch (const Error& error) {
        errors[worker] = "another error: " + std::string(error.what());
      }
    });
  workers.clear();
  for (const std::string& error : errors)
    EXPECT_TRUE(error.find("optimizer wrong still uses") != std::string::npos && !error.starts_with("another"))
        << error;
  EXPECT_THROW(static_cast<void>(servers[0].wait_for_end(std::chrono::seconds(1))), Misuse);
}

}  // namespace
}  // namespace syncopate
