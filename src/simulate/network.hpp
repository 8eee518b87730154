// Network: hosts with one outgoing and one incoming port, their ranks, and the cost of a message between two ranks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "syncopate/plan.hpp"

namespace syncopate::simulate {

struct Network {
  int ranks = 1;
  int ranks_per_host = 1;  ///< neighbouring ranks share a host
  LinkCost inter, intra;
  std::vector<double> slowness;  ///< by host: factor of its port's time per byte; empty: 1 everywhere

  [[nodiscard]] std::uint32_t host_of(std::uint32_t rank) const noexcept {
    return rank / static_cast<std::uint32_t>(ranks_per_host);
  }
  [[nodiscard]] std::uint32_t hosts() const noexcept { return host_of(static_cast<std::uint32_t>(ranks) - 1) + 1; }
  [[nodiscard]] const LinkCost& link(std::uint32_t from, std::uint32_t to) const noexcept {
    return host_of(from) == host_of(to) ? intra : inter;
  }
  /// Whether all ranks are on one host, or every rank has its own port and all ports are equally fast.
  [[nodiscard]] bool is_uniform() const noexcept { return slowness.empty() && (ranks_per_host == 1 || hosts() == 1); }
  /// The factor of the time per byte between two hosts: that of the slower port.
  [[nodiscard]] double slowness_between(std::uint32_t out, std::uint32_t in) const noexcept {
    return slowness.empty() ? 1 : std::max(slowness[out], slowness[in]);
  }
};

/// The outgoing and incoming port of every host. A message between hosts holds one of each.
class Ports final {
 public:
  explicit Ports(const Network& network) : out_s_(network.hosts()), in_s_(network.hosts()) {}

  /// Returns when a message that can begin at `begin_s` and takes `taken_s` has passed; it queues for both ports.
  [[nodiscard]] double pass(std::uint32_t out, std::uint32_t in, double begin_s, double taken_s) {
    return out_s_[out] = in_s_[in] = std::max({begin_s, out_s_[out], in_s_[in]}) + taken_s;
  }

 private:
  std::vector<double> out_s_, in_s_;  ///< by host: time from which the port is free
};

}  // namespace syncopate::simulate
