// Scopes of a group: the ranks of each scope, as seen by one rank.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "syncopate/plan.hpp"
#include "transport/endpoint.hpp"

namespace syncopate::collective::group {

/// The kind of links between ranks that share memory, in a group in which some do.
[[nodiscard]] std::string kind_in_memory(const transport::Endpoint& endpoint);

/// The ranks that run a call together.
struct Members {
  std::vector<int> ranks;      ///< of the group, in ascending order; empty: this rank takes no part
  int rank = -1;               ///< this rank's index in them
  PlanRequest request;         ///< only their ranks and hosts; each call sets the rest
  bool shares_memory = false;  ///< all of them share memory
  [[nodiscard]] bool alone() const noexcept { return ranks.size() <= 1; }
};

class Scopes final {
 public:
  Scopes() = default;
  /// `place` has the group's ranks and hosts for plans; `endpoint` has the ranks that share memory.
  Scopes(const transport::Endpoint& endpoint, const PlanRequest& place);
  [[nodiscard]] const Members& of(Scope scope) const noexcept { return members_[static_cast<std::size_t>(scope)]; }

 private:
  std::array<Members, 3> members_;
};

}  // namespace syncopate::collective::group
