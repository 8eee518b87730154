// Network: hosts with one port in and one out, ranks on them, and what a message costs between any two.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "syncopate/plan.hpp"

namespace syncopate::simulate {

struct Network {
  int ranks = 1;
  int ranks_per_host = 1;  ///< neighbours share a host
  LinkCost inter, intra;
  std::vector<double> slowness;  ///< by host: its port takes this many times longer for a byte; empty: 1 everywhere

  [[nodiscard]] std::uint32_t host_of(std::uint32_t rank) const noexcept {
    return rank / static_cast<std::uint32_t>(ranks_per_host);
  }
  [[nodiscard]] std::uint32_t hosts() const noexcept { return host_of(static_cast<std::uint32_t>(ranks) - 1) + 1; }
  [[nodiscard]] const LinkCost& link(std::uint32_t from, std::uint32_t to) const noexcept {
    return host_of(from) == host_of(to) ? intra : inter;
  }
  /// How many times longer a byte takes from host to host: the slower port decides.
  [[nodiscard]] double slowness_between(std::uint32_t out, std::uint32_t in) const noexcept {
    return slowness.empty() ? 1 : std::max(slowness[out], slowness[in]);
  }
};

}  // namespace syncopate::simulate
