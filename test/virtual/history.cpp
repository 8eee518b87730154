// History: ranks are started, events happen until all ranks are gone, and the laws are checked.
#include "virtual/history.hpp"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>

#include "virtual/laws.hpp"
#include "virtual/strangers.hpp"

namespace syncopate::virtual_world {

namespace {

/// After every limit of the scenario.
constexpr auto kEnd = 60s;
/// Longer than a call is retried.
constexpr auto kCrowd = 15s;

/// Keeps the memory of one history for the next.
void keep_memory() {
  [[maybe_unused]] static const int once = ::mallopt(M_MMAP_THRESHOLD, 1 << 24) + ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

History play(World& world, const Scenario& scenario, std::uint64_t seed) {
  keep_memory();
  History history{.seed = seed, .scenario = scenario.text()};
  Network network(world, scenario.weather);
  {
    const Time begin = world.now();
    Ranks ranks;
    for (int rank = 0; rank < scenario.ranks; ++rank) ranks.push_back(std::make_unique<Rank>(network, scenario, rank));
    for (const auto& rank : ranks) world.in(world.draw(Duration{0}, scenario.latest_start), [&rank] { rank->start(); });
    Rank& victim = *ranks[static_cast<std::size_t>(scenario.victim)];
    if (scenario.strikes_early)
      world.in(scenario.strike_after, [&] {
        if (!victim.is_over()) victim.strike();
      });
    std::optional<Strangers> strangers, at_meeting;
    if (scenario.fault == Fault::crowd)
      strangers.emplace(network, Rank::address_of(scenario.victim), scenario.seats, begin + kCrowd);
    if (scenario.fault == Fault::crowd && scenario.victim == 0)
      at_meeting.emplace(network, Rank::meeting_place(), scenario.seats, begin + kCrowd);
    const auto all_over = [&] { return std::ranges::all_of(ranks, [](const auto& rank) { return rank->is_over(); }); };
    const Time end = world.now() + kEnd;
    while (!all_over() && world.go_on(end)) {
    }
    for (int rank = 0; rank < scenario.ranks; ++rank)
      std::ranges::move(broken_laws(scenario, ranks, rank, begin), std::back_inserter(history.broken));
    if (const std::string law = law_broken_by_all(scenario, ranks, begin); !law.empty()) history.broken.push_back(law);
  }
  if (history.broken.empty() && network.open_sockets() != 0)
    history.broken.push_back(fmt::format("{} sockets are open after all ranks have ended", network.open_sockets()));
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

History distant_history(std::uint64_t seed, bool prints) {
  World world(seed);
  world.prints = prints;
  Scenario scenario = draw_scenario(world);
  scenario.ranks = 48;
  scenario.seats = 256;
  scenario.join_time = 20s;
  scenario.weather.fastest = scenario.weather.slowest = 36ms;
  scenario.fault = Fault::long_stop;
  scenario.victim = static_cast<int>(world.draw(0, 47));
  scenario.leavers = static_cast<int>(world.draw(0, 47));
  scenario.strikes_early = false;
  scenario.strike_at = static_cast<int>(world.draw(1, static_cast<std::uint64_t>(scenario.operations)));
  scenario.stop_for = world.draw(2 * scenario.silence, 4 * scenario.silence);
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
