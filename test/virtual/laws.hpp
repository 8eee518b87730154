// Laws: what each rank of a history must have kept; docs/virtual_time.md states them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "virtual/rank.hpp"

namespace syncopate::virtual_world {

using Ranks = std::vector<std::unique_ptr<Rank>>;

/// The laws that a rank broke, each with the observation. `begin`: of the history.
[[nodiscard]] std::vector<std::string> broken_laws(const Scenario& scenario, const Ranks& ranks, int number,
                                                   Time begin);
/// The law that all ranks broke together; empty: none.
[[nodiscard]] std::string law_broken_by_all(const Scenario& scenario, const Ranks& ranks, Time begin);

}  // namespace syncopate::virtual_world
