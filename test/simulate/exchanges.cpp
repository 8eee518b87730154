// Exchanges in virtual time: equal to the cost laws where those hold, and right where they do not reach.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "collective/select/select.hpp"
#include "simulate/exchange.hpp"
#include "simulate/steady.hpp"
#include "syncopate/error.hpp"

namespace syncopate::simulate {
namespace {

using collective::replay::Ensemble;

constexpr LinkCost kLink{.alpha_s = 1e-4, .beta_s_per_byte = 8e-9, .gamma_s_per_byte = 1e-9};

Network flat(int ranks) {
  return {.ranks = ranks, .ranks_per_host = 1, .inter = kLink, .intra = kLink, .slowness = {}};
}

double last_of(const std::vector<double>& times) { return *std::ranges::max_element(times); }

double exchange_s(const Network& network, const std::string& algorithm, std::uint64_t bytes) {
  const std::vector<double> together(static_cast<std::size_t>(network.ranks), 0.0);
  return last_of(Exchanger(network).run({.algorithm = algorithm, .bytes = bytes}, together));
}

TEST(Exchange, OnAPowerOfTwoTakesWhatTheCostLawSays) {
  for (const char* name : {"ring", "halving_doubling", "recursive_doubling", "mst"})
    for (const int ranks : {2, 4, 8, 32}) {
      const PlanRequest request{.algorithm = name, .ranks = ranks, .bytes = 1 << 20};
      const double law = collective::select::choose(request, kLink).law_s;
      EXPECT_NEAR(exchange_s(flat(ranks), name, 1 << 20), law, 1e-9 * law) << name << ' ' << ranks;
    }
}

TEST(Exchange, OfEveryAlgorithmAndSizeEndsAndTakesAtLeastTheBound) {
  for (const collective::Algorithm* entry : collective::algorithms()) {
    if (!entry->offers(Collective::allreduce)) continue;
    for (int ranks = 1; ranks <= 17; ++ranks) {
      const double bound = 2.0 * (ranks - 1) / ranks * (1 << 20) * kLink.beta_s_per_byte;
      EXPECT_GE(exchange_s(flat(ranks), std::string(entry->name), 1 << 20), bound * 0.999)
          << entry->name << ' ' << ranks;
    }
  }
}

TEST(Exchange, BeginsForEachRankWhenItCalls) {
  std::vector<double> called(8, 0.0);
  called[3] = 5;
  const std::vector<double> left = Exchanger(flat(8)).run({.algorithm = "ring", .bytes = 1 << 20}, called);
  for (const double left_s : left) EXPECT_GT(left_s, 5) << "all wait for the last one";
  EXPECT_LT(last_of(left), 5 + exchange_s(flat(8), "ring", 1 << 20) + 1e-9);
}

TEST(Exchange, ByAutoIsNearlyTheFastestWhereRanksShareAPort) {
  const LinkCost inter{.alpha_s = 5e-5, .beta_s_per_byte = 8e-9, .gamma_s_per_byte = 0};
  const LinkCost intra{.alpha_s = 2e-6, .beta_s_per_byte = 1e-10, .gamma_s_per_byte = 0};
  const Network network{.ranks = 32, .ranks_per_host = 8, .inter = inter, .intra = intra, .slowness = {}};
  for (const Collective collective : {Collective::allgather, Collective::allreduce, Collective::reduce_scatter})
    for (const std::uint64_t bytes : {64U << 10, 1U << 20, 16U << 20}) {
      const auto seconds_by = [&](std::string_view name) {
        return Exchanger(network).run_together({collective, std::string(name), bytes});
      };
      double least = std::numeric_limits<double>::infinity();
      for (const collective::Algorithm* entry : collective::algorithms())
        if (entry->offers(collective)) least = std::min(least, seconds_by(entry->name));
      EXPECT_LE(seconds_by("auto"), 1.3 * least) << name_of(collective) << ' ' << bytes;
    }
}

TEST(Exchange, OfRanksThatShareAPortTakesTurnsThere) {
  // Halves go to the other host at once: two ranks a host, one port.
  Network shared = flat(4);
  shared.ranks_per_host = 2;
  shared.intra = {.alpha_s = 0, .beta_s_per_byte = 0, .gamma_s_per_byte = 0};
  shared.inter = {.alpha_s = 0, .beta_s_per_byte = 1, .gamma_s_per_byte = 0};
  Network apart = shared;
  apart.ranks_per_host = 1;
  EXPECT_DOUBLE_EQ(exchange_s(apart, "recursive_doubling", 100), 200);
  EXPECT_DOUBLE_EQ(exchange_s(shared, "recursive_doubling", 100), 200)
      << "one round inside, one where two share a port";
  Network alone = shared;
  alone.ranks_per_host = 4;
  EXPECT_DOUBLE_EQ(exchange_s(alone, "recursive_doubling", 100), 0);
}

TEST(Exchange, ARingCrossesEachPortOnceWhateverTheRanksOfAHost) {
  Network network = flat(8);
  network.ranks_per_host = 4;
  network.intra = {.alpha_s = 0, .beta_s_per_byte = 0, .gamma_s_per_byte = 0};
  network.inter = {.alpha_s = 0, .beta_s_per_byte = 1, .gamma_s_per_byte = 0};
  EXPECT_NEAR(exchange_s(network, "ring", 800), 2 * 7 * 100, 100.5) << "the last chunk may end inside a host";
}

TEST(Exchange, GoesAsFastAsItsSlowestPort) {
  Network network = flat(4);
  network.slowness = {1, 1, 3, 1};
  network.inter.alpha_s = network.inter.gamma_s_per_byte = 0;
  const double healthy = exchange_s(flat(4), "ring", 1 << 20), slow = exchange_s(network, "ring", 1 << 20);
  EXPECT_GT(slow, 2 * healthy);
  EXPECT_LE(slow, 3 * 1.5 * (1 << 20) * kLink.beta_s_per_byte * (1 + 1e-9));
}

constexpr Collective kExchanged[] = {Collective::allreduce, Collective::broadcast, Collective::reduce_scatter,
                                     Collective::allgather, Collective::reduce};

/// Every entry on several numbers of ranks.
void on_every_entry(const std::function<void(const PlanRequest&)>& check) {
  for (const collective::Algorithm* entry : collective::algorithms())
    for (const Collective collective : kExchanged)
      for (const int ranks : {2, 3, 6, 8, 13})
        if (entry->offers(collective))
          check({.collective = collective, .algorithm = std::string(entry->name), .ranks = ranks, .bytes = 100'004});
}

/// Ranks call at different times.
std::vector<double> scattered(int ranks) {
  std::vector<double> called;
  for (int rank = 0; rank < ranks; ++rank) called.push_back(1e-3 * ((rank * 7 + 3) % 5));
  return called;
}

void expect_equal(const std::vector<double>& times, const std::vector<double>& wanted, const PlanRequest& request) {
  ASSERT_EQ(times.size(), wanted.size());
  for (std::size_t rank = 0; rank < times.size(); ++rank)
    EXPECT_NEAR(times[rank], wanted[rank], 1e-12)
        << request.algorithm << ' ' << name_of(request.collective) << ", " << request.ranks << " ranks, rank " << rank;
}

TEST(Exchange, OfSteadyPlansIsTheSameByRecurrenceAsByReplay) {
  int compared = 0;
  on_every_entry([&](const PlanRequest& request) {
    Network network = flat(request.ranks);
    network.slowness.assign(static_cast<std::size_t>(request.ranks), 1);
    network.slowness[1] = 2.5;
    const collective::replay::Ensemble ensemble =
        collective::replay::whole_ensemble_of(collective::plans_of(collective::select::choose(request, kLink)));
    if (!is_steady(network, ensemble)) return;
    ++compared;
    const std::vector<double> called = scattered(request.ranks);
    expect_equal(run_steady(network, ensemble, request.bytes, called),
                 run_replay(network, ensemble, request.bytes, called), request);
  });
  EXPECT_GE(compared, 15) << "the ring at least is steady";
}

TEST(Exchange, OfRotationsIsTheSameByOneProgramAsByAll) {
  int rotating = 0, leaving_together = 0;
  on_every_entry([&](const PlanRequest& request) {
    const collective::Choice choice = collective::select::choose(request, kLink);
    const Ensemble one = ensemble_of(collective::plans_of(choice)),
                   all = whole_ensemble_of(collective::plans_of(choice));
    if (!one.rotates()) return;
    ++rotating;
    leaving_together += leaves_together(one) ? 1 : 0;
    const Network network = flat(request.ranks);
    const std::vector<double> together(all.programs.size(), 0.0), called = scattered(request.ranks);
    const double left_s = run_replay(network, one, request.bytes, {0.0}).at(0);
    expect_equal(std::vector<double>(all.programs.size(), left_s), run_replay(network, all, request.bytes, together),
                 request);
    expect_equal(Exchanger(network).run({request.collective, request.algorithm, request.bytes}, called),
                 run_replay(network, all, request.bytes, called), request);
  });
  EXPECT_GE(rotating, 25) << "ring and pairwise exchange";
  EXPECT_GE(leaving_together, 15) << "the ring";
  EXPECT_LT(leaving_together, rotating) << "pairwise exchange goes on with those who have called";
}

TEST(Exchange, WhoseRanksShareAPortIsNotSteady) {
  const auto ensemble = [](const char* algorithm) {
    const PlanRequest request{.algorithm = algorithm, .ranks = 4, .bytes = 4096};
    return whole_ensemble_of(collective::plans_of(collective::select::choose(request, kLink)));
  };
  Network network = flat(4);
  EXPECT_TRUE(is_steady(network, ensemble("ring")));
  network.ranks_per_host = 2;
  EXPECT_TRUE(is_steady(network, ensemble("ring"))) << "a ring crosses each port once";
  EXPECT_FALSE(is_steady(network, ensemble("recursive_doubling")));
}

TEST(Exchange, OfAnUnknownAlgorithmIsMisuse) {
  EXPECT_THROW(static_cast<void>(exchange_s(flat(4), "snail", 4)), Misuse);
  EXPECT_THROW(static_cast<void>(Exchanger(flat(4)).run({.bytes = 4}, {0, 0})), Misuse);
}

}  // namespace
}  // namespace syncopate::simulate
