// History: all that follows from one seed, and the laws that it must have kept.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace syncopate::virtual_world {

struct History {
  std::uint64_t seed = 0;
  std::string scenario;
  std::uint64_t digest = 0;  ///< of every event: the same seed gives the same
  std::uint64_t events = 0;
  std::vector<std::string> broken;  ///< laws, with what was seen instead; empty: all were kept
};

/// `prints`: every event.
[[nodiscard]] History history_of(std::uint64_t seed, bool prints = false);
/// So many ranks that only calculate, on a calm network: for measuring.
[[nodiscard]] History calm_history(std::uint64_t seed, int ranks, int operations);

}  // namespace syncopate::virtual_world
