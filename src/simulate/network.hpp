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
  /// Every rank has a port of its own, as fast as all others, or all are on one host.
  [[nodiscard]] bool is_uniform() const noexcept { return slowness.empty() && (ranks_per_host == 1 || hosts() == 1); }
  /// How many times longer a byte takes from host to host: the slower port decides.
  [[nodiscard]] double slowness_between(std::uint32_t out, std::uint32_t in) const noexcept {
    return slowness.empty() ? 1 : std::max(slowness[out], slowness[in]);
  }
};

/// Every host's port out and port in. A message between hosts holds one of each.
class Ports final {
 public:
  explicit Ports(const Network& network) : out_s_(network.hosts()), in_s_(network.hosts()) {}

  /// When a message that may begin at `begin_s` and takes `taken_s` is through; it takes its turn at both ports.
  [[nodiscard]] double pass(std::uint32_t out, std::uint32_t in, double begin_s, double taken_s) {
    return out_s_[out] = in_s_[in] = std::max({begin_s, out_s_[out], in_s_[in]}) + taken_s;
  }

 private:
  std::vector<double> out_s_, in_s_;  ///< by host: when it falls free
};

}  // namespace syncopate::simulate
