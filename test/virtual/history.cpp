// History: ranks are started, events happen until all ranks are gone, and the laws are checked.
#include "virtual/history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "virtual/rank.hpp"
#include "virtual/strangers.hpp"

namespace syncopate::virtual_world {

namespace {

/// Beyond every bound of the scenario.
constexpr auto kEnd = 60s;
/// Longer than a call is tried.
constexpr auto kCrowd = 15s;

using Ranks = std::vector<std::unique_ptr<Rank>>;
using End = Outcome::End;

/// How long after a fault the last survivor may learn of it: twice in a row a silence, and what is under way.
Duration bound_of(const Scenario& scenario) { return 2 * scenario.silence + 2s; }

void judge_one(const Scenario& scenario, const Ranks& ranks, int number, std::vector<std::string>& broken) {
  const Rank& victim = *ranks[static_cast<std::size_t>(scenario.victim)];
  const Rank& rank = *ranks[static_cast<std::size_t>(number)];
  const Outcome& outcome = rank.outcome();
  const auto breaks = [&](const std::string& what) { broken.push_back(fmt::format("rank {} {}", number, what)); };
  if (!rank.is_over()) return breaks("waits beyond its bound");
  if (!outcome.wrong.empty()) breaks("has a wrong result: " + outcome.wrong);
  const bool is_fated = kind_after(scenario.fault) != nullptr && victim.struck().has_value();
  if (is_fated && &rank == &victim) return;  // what it says of the others is nobody's concern
  if (outcome.end == End::failed) {
    const int named = outcome.failure.where.peer;
    const bool is_right = is_fated && outcome.failure.kind == kind_after(scenario.fault) &&
                          (named == scenario.victim || scenario.fault == Fault::other_call ||
                           (scenario.fault == Fault::cut && named == victim.cut_from()));
    if (!is_right) breaks(fmt::format("accuses: {}: {}", outcome.failure.kind, outcome.failure.message));
  }
  const bool must_know = is_fated && scenario.fault != Fault::cut && !victim.was_leaving();
  if (must_know && outcome.end == End::in_order && outcome.ended > *victim.struck() + bound_of(scenario))
    breaks(fmt::format("never learned of the {} of rank {}", text_of(scenario.fault), scenario.victim));
  if (must_know && outcome.end == End::failed && outcome.ended > *victim.struck() + bound_of(scenario))
    breaks(fmt::format("learned of the {} of rank {} only after {:.1f} s", text_of(scenario.fault), scenario.victim,
                       base::seconds(outcome.ended - *victim.struck())));
}

History play(World& world, const Scenario& scenario, std::uint64_t seed) {
  History history{.seed = seed, .scenario = scenario.text()};
  Network network(world, scenario.weather);
  {
    Ranks ranks;
    for (int rank = 0; rank < scenario.ranks; ++rank) ranks.push_back(std::make_unique<Rank>(network, scenario, rank));
    for (const auto& rank : ranks) world.in(world.draw(Duration{0}, scenario.latest_start), [&rank] { rank->start(); });
    std::optional<Strangers> strangers;
    if (scenario.fault == Fault::crowd)
      strangers.emplace(network, Rank::address_of(scenario.victim), scenario.seats, world.now() + kCrowd);
    const auto all_over = [&] { return std::ranges::all_of(ranks, [](const auto& rank) { return rank->is_over(); }); };
    const Time end = world.now() + kEnd;
    while (!all_over() && world.go_on(end)) {
    }
    for (int rank = 0; rank < scenario.ranks; ++rank) judge_one(scenario, ranks, rank, history.broken);
  }
  if (history.broken.empty() && network.open_sockets() != 0)
    history.broken.push_back(fmt::format("{} sockets are open when all ranks are gone", network.open_sockets()));
  history.digest = world.digest();
  history.events = world.events();
  return history;
}

}  // namespace

History history_of(std::uint64_t seed, bool prints) {
  World world(seed);
  world.prints = prints;
  const Scenario scenario = draw_scenario(world);
  return play(world, scenario, seed);
}

History calm_history(std::uint64_t seed, int ranks, int operations) {
  World world(seed);
  Scenario scenario;
  scenario.ranks = ranks;
  scenario.operations = operations;
  scenario.most_elements = 100;
  scenario.only_collectives = true;
  scenario.key = seed;
  scenario.leavers = ranks;
  scenario.leave_within = 1ms;
  scenario.weather.pieces_percent = 5;
  return play(world, scenario, seed);
}

}  // namespace syncopate::virtual_world
