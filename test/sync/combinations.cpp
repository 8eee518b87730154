// Combinations: the table of what does not work together is what synchronizers, servers and optimizers refuse.
#include "syncopate/tooling/combinations.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "compress/codec.hpp"
#include "optim/rule.hpp"
#include "ranks.hpp"
#include "schedule/policy.hpp"
#include "server/consistency.hpp"
#include "server/table/server_tables.hpp"
#include "server/table/worker_tables.hpp"
#include "sync/exchange.hpp"
#include "syncopate/optimizer.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate {
namespace {

constexpr std::size_t kCount = 8192, kRowsOf = 64;

template <class Make>
bool is_refused(const Make& make) {
  try {
    make();
    return false;
  } catch (const Misuse&) {
    return true;
  }
}

bool refused_by_synchronizer(Group& group, const Combination& chosen) {
  std::vector<float> weights(kCount);
  SynchronizerOptions options{.policy = chosen.policy.empty() ? "fusion" : chosen.policy,
                              .coding = {.codec = chosen.codec, .feedback = {.kind = chosen.feedback}},
                              .exchange = chosen.exchange,
                              .weights = {Buffer(std::span(weights))}};
  if (updater_of(chosen.exchange) != Updater::caller) options.update = [](std::size_t, std::size_t) {};
  return is_refused([&] { Synchronizer(group, {{.name = "gradient", .elements = kCount, .rows = kRowsOf}}, options); });
}

bool refused_by_tables(const Combination& chosen) {
  std::vector<float> weights(kCount);
  const server::Setup setup{.tables = {{.name = "gradient", .elements = kCount, .rows = kRowsOf}},
                            .servers = 2,
                            .consistency = chosen.consistency,
                            .coding = {.codec = chosen.codec, .feedback = {.kind = chosen.feedback}},
                            .optimizer = chosen.optimizer};
  return is_refused([&] {
    const server::WorkerTables worker(setup, 0, {Buffer(std::span(weights))}, [](auto&&) {});
    server::ServerTables server(0, 1 << 24, [](auto&&) {});
    server.receive(0, server::Hello{.is_new = true, .setup = server::payload_of(setup.bytes())});
  });
}

bool refused_by_optimizer(const Combination& chosen) {
  std::vector<float> weights(8);
  return is_refused([&] {
    Optimizer({{"weights", Buffer(std::span(weights))}},
              {.rule = chosen.optimizer, .corrected = chosen.feedback == FeedbackKind::momentum});
  });
}

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::ranges::find(names, name) != names.end();
}

bool is_excluded(const std::vector<Exclusion>& table, const Combination& chosen) {
  return std::ranges::any_of(table, [&](const Exclusion& each) {
    const bool is_here = holds(each.exchanges, chosen.exchange) ||
                         holds(each.exchanges, chosen.exchange + " under " + chosen.consistency);
    return is_here && holds(each.codecs, chosen.codec) &&
           holds(each.feedbacks, std::string(name_of(chosen.feedback))) && holds(each.policies, chosen.policy) &&
           holds(each.optimizers, chosen.optimizer);
  });
}

/// Calls `visit` for every codec, feedback and optimizer.
template <class Visit>
void each_of(Combination chosen, const Visit& visit) {
  for (const auto* codec : compress::codecs())
    for (const FeedbackKind feedback : kFeedbackKinds)
      for (const auto* rule : optim::rules()) {
        chosen.codec = codec->name;
        chosen.feedback = feedback;
        chosen.optimizer = rule->name;
        visit(chosen);
      }
}

std::string shown(const Combination& chosen) {
  return chosen.exchange + " " + chosen.consistency + ", codec " + chosen.codec + ", feedback " +
         std::string(name_of(chosen.feedback)) + ", policy " + chosen.policy + ", optimizer " + chosen.optimizer;
}

TEST(Combinations, OfExchangesAreRefusedWhereTheTableSaysSo) {
  const std::vector<Exclusion> table = exclusions();
  test::on_groups(1, [&](Group& group) {
    for (const auto* exchange : sync::exchanges())
      for (const auto* policy : schedule::policies()) {
        std::map<std::pair<std::string, FeedbackKind>, bool> known;  // the optimizer is not the synchronizer's
        each_of({.exchange = std::string(exchange->name), .policy = std::string(policy->name)}, [&](const auto& each) {
          const auto [found, is_first] = known.try_emplace({each.codec, each.feedback});
          if (is_first) found->second = refused_by_synchronizer(group, each);
          EXPECT_EQ(is_excluded(table, each), found->second || refused_by_optimizer(each)) << shown(each);
        });
      }
  });
}

TEST(Combinations, WithServersAreRefusedWhereTheTableSaysSo) {
  const std::vector<Exclusion> table = exclusions();
  for (const auto* model : server::consistencies())
    each_of({.exchange = "parameter_server", .consistency = std::string(model->name)},
            [&](const auto& each) { EXPECT_EQ(is_excluded(table, each), refused_by_tables(each)) << shown(each); });
}

TEST(Combinations, HaveAReasonForEveryExclusion) {
  for (const Exclusion& each : exclusions()) {
    EXPECT_FALSE(each.reason.empty());
    EXPECT_EQ(each.reason.find("allowed"), std::string::npos) << each.reason;
  }
}

}  // namespace
}  // namespace syncopate
