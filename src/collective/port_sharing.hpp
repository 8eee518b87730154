// PortSharing: how many times as long a message between hosts takes where the ranks of a host share its port.
#pragma once

#include <map>
#include <utility>

#include "collective/algorithm.hpp"

namespace syncopate::collective {

/// Cost laws give every rank its own port. A rank's share of the traffic through its host's port is counted in its
/// plan, once for each algorithm and shape. Not for composed algorithms: their laws are those of their parts.
class PortSharing final {
 public:
  /// The factor of beta between hosts: bytes through the busier direction of a host's port, divided by the bytes of its
  /// busiest rank; at least 1. It is that of the first host with several ranks. 1 if each rank has a host of its own.
  /// `hosts` has the host number of each rank; `shape` is resolved.
  [[nodiscard]] double factor(const Algorithm& algorithm, const Shape& shape, const std::vector<std::uint32_t>& hosts);

 private:
  std::map<std::pair<const Algorithm*, Shape>, double> known_;
};

}  // namespace syncopate::collective
