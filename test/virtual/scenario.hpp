// Scenario: the course of one history, drawn from its seed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "syncopate/error.hpp"
#include "virtual/network.hpp"

namespace syncopate::virtual_world {

/// The fault of the victim.
enum class Fault : std::uint8_t {
  none,
  kill,        ///< its process ends
  vanish,      ///< its host disappears silently
  long_stop,   ///< it does not run for longer than the silence
  short_stop,  ///< it does not run for less than the silence
  cut,         ///< one of its connections breaks
  no_sockets,  ///< for a while it has no descriptor for accepting, nor, after the last operation, for calls
  crowd,       ///< silent strangers hold all its room for handshakes, and take it again
  gives_up,    ///< its program throws
  other_call   ///< its program calls another operation than the others
};
[[nodiscard]] const char* text_of(Fault fault) noexcept;
/// Whether it strikes at any moment, and not in a call of the program.
[[nodiscard]] constexpr bool is_sudden(Fault fault) noexcept {
  return fault != Fault::gives_up && fault != Fault::other_call;
}
/// The error that the others then throw; empty: none.
[[nodiscard]] constexpr std::optional<ErrorKind> kind_after(Fault fault) noexcept {
  switch (fault) {
    case Fault::kill:
    case Fault::vanish:
    case Fault::long_stop:
    case Fault::cut:
      return ErrorKind::peer_lost;
    case Fault::gives_up:
      return ErrorKind::remote_failure;
    case Fault::other_call:
      return ErrorKind::mismatch;
    default:
      return std::nullopt;
  }
}

struct Scenario {
  int ranks = 3;
  int operations = 0;
  std::size_t most_elements = 1;
  std::uint64_t key = 0;          ///< of the operations
  bool only_collectives = false;  ///< no messages
  int ranks_per_host = 0;         ///< 0: one rank
  Duration silence = 2s;
  Duration latest_start{};
  Duration join_time = 20s;
  Duration longest_pause{};  ///< between operations
  int leavers = 0;           ///< ranks that leave soon after the last operation; the others stay longer
  Duration leave_within{};
  std::size_t seats = 256;  ///< handshakes that a rank has room for
  Weather weather;
  Fault fault = Fault::none;
  int victim = 0;
  bool strikes_early = false;  ///< at `strike_after` from the beginning, while ranks start, meet and connect
  int strike_at = 0;           ///< otherwise: operations that the victim has finished
  Duration strike_after{};     ///< delay after that point
  Duration stop_for{};

  [[nodiscard]] std::string text() const;
};

[[nodiscard]] Scenario draw_scenario(World& world);

}  // namespace syncopate::virtual_world
