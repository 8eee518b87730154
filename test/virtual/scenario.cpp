// Scenario: sizes, weather and faults, each drawn so that rare coincidences of events are frequent.
#include "virtual/scenario.hpp"

#include <fmt/format.h>

namespace syncopate::virtual_world {

const char* text_of(Fault fault) noexcept {
  constexpr const char* kTexts[] = {"no fault", "kill",       "vanish", "long stop", "short stop",
                                    "cut",      "no sockets", "crowd",  "abort",     "other call"};
  return kTexts[static_cast<std::size_t>(fault)];
}

Scenario draw_scenario(World& world) {
  Scenario drawn;
  drawn.ranks = static_cast<int>(world.happens(5) ? world.draw(17, 64) : world.draw(3, 16));
  drawn.operations = static_cast<int>(world.draw(1, 12));
  drawn.most_elements = world.happens(10) ? 60'000 : 600;
  drawn.key = world.draw(0, UINT32_MAX);
  if (world.happens(40)) drawn.ranks_per_host = static_cast<int>(world.draw(1, 3));
  drawn.latest_start = world.happens(50) ? Duration{0} : world.draw(Duration{1ms}, Duration{800ms});
  drawn.longest_pause = world.happens(50) ? Duration{0} : world.draw(Duration{1us}, Duration{20ms});
  drawn.leavers = static_cast<int>(world.draw(0, static_cast<std::uint64_t>(drawn.ranks - 1)));
  drawn.leave_within = world.draw(Duration{10us}, Duration{world.happens(50) ? 5ms : 500ms});
  if (world.happens(30)) drawn.seats = static_cast<std::size_t>(drawn.ranks) / 4 + 1;
  drawn.weather.fastest = world.draw(Duration{5us}, Duration{50us});
  drawn.weather.slowest = drawn.weather.fastest + world.draw(Duration{10us}, Duration{world.happens(30) ? 20ms : 1ms});
  drawn.weather.buffer = drawn.most_elements <= 600 && world.happens(20) ? world.draw(200, 4000) : 64 << 10;
  drawn.weather.pieces_percent = static_cast<unsigned>(world.draw(0, 30));
  drawn.fault = world.happens(40) ? Fault::kill : static_cast<Fault>(world.draw(0, 9));
  drawn.victim = static_cast<int>(world.draw(0, static_cast<std::uint64_t>(drawn.ranks - 1)));
  drawn.strike_at = world.happens(50) ? drawn.operations
                                      : static_cast<int>(world.draw(1, static_cast<std::uint64_t>(drawn.operations)));
  drawn.strike_after = world.draw(Duration{1us}, Duration{world.happens(50) ? 5ms : 500ms});
  if (world.happens(40) && is_sudden(drawn.fault)) {
    drawn.strikes_early = true;
    drawn.strike_after = world.draw(Duration{1us}, drawn.latest_start + 40 * drawn.weather.slowest);
    if (drawn.fault != Fault::crowd) drawn.join_time = world.draw(Duration{3s}, Duration{20s});
  }
  drawn.stop_for = drawn.fault == Fault::long_stop ? world.draw(2 * drawn.silence, 4 * drawn.silence)
                                                   : world.draw(Duration{1ms}, drawn.silence / 2);
  return drawn;
}

std::string Scenario::text() const {
  return fmt::format(
      "{} ranks, {} operations of at most {} elements, start within {:.1f} ms, {} leave within {:.1f} ms, {} seats, "
      "one way {:.3f} to {:.3f} ms, buffers of {} bytes, {} % cut; {} of rank {} {:.3f} ms after {}",
      ranks, operations, most_elements, 1e3 * base::seconds(latest_start), leavers, 1e3 * base::seconds(leave_within),
      seats, 1e3 * base::seconds(weather.fastest), 2e3 * base::seconds(weather.slowest), weather.buffer,
      weather.pieces_percent, text_of(fault), victim, 1e3 * base::seconds(strike_after),
      strikes_early ? "the beginning" : fmt::format("{} operations", strike_at));
}

}  // namespace syncopate::virtual_world
