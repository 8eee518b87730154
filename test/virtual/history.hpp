// History: everything that follows from one seed, and its broken laws.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace syncopate::virtual_world {

struct History {
  std::uint64_t seed = 0;
  std::string scenario;
  std::uint64_t digest = 0;  ///< of every event: equal for equal seeds
  std::uint64_t events = 0;
  std::vector<std::string> broken;  ///< laws, each with the observation that broke it; empty: none
};

/// `prints`: prints every event.
[[nodiscard]] History history_of(std::uint64_t seed, bool prints = false);
/// 48 ranks that are 36 to 72 ms apart, of which one is stopped for longer than the silence.
[[nodiscard]] History distant_history(std::uint64_t seed, bool prints = false);
/// `ranks` ranks that only compute, on a calm network: for measurements.
[[nodiscard]] History calm_history(std::uint64_t seed, int ranks, int operations);

}  // namespace syncopate::virtual_world
