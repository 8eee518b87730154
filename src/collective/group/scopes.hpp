// Scopes of a group: the ranks that each scope means, as one of them sees it.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "syncopate/plan.hpp"
#include "transport/endpoint.hpp"

namespace syncopate::collective::group {

/// The kind of links between ranks that share memory, in a group where some do.
[[nodiscard]] std::string kind_in_memory(const transport::Endpoint& endpoint);

/// The ranks that carry out a call together.
struct Members {
  std::vector<int> ranks;      ///< of the group, in order; empty: this rank takes part in nothing
  int rank = -1;               ///< this rank's index in them
  PlanRequest request;         ///< ranks and hosts of them alone; the rest is each call's
  bool shares_memory = false;  ///< all of them
  [[nodiscard]] bool alone() const noexcept { return ranks.size() <= 1; }
};

class Scopes final {
 public:
  Scopes() = default;
  /// `place` has the group's ranks and hosts, as plans shall see them; `endpoint` knows which share memory.
  Scopes(const transport::Endpoint& endpoint, const PlanRequest& place);
  [[nodiscard]] const Members& of(Scope scope) const noexcept { return members_[static_cast<std::size_t>(scope)]; }

 private:
  std::array<Members, 3> members_;
};

}  // namespace syncopate::collective::group
