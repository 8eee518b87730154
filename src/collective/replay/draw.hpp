// Draw: plans as text, with the sends and receives of every rank in every round.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "syncopate/plan.hpp"

namespace syncopate::collective::replay {

struct Title {
  Collective collective = Collective::allreduce;
  std::string_view algorithm;
};

/// One line per rank, one column per round.
[[nodiscard]] std::string draw(const std::vector<Plan>& plans, const Title& title);

}  // namespace syncopate::collective::replay
