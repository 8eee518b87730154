// SubPlan: an algorithm that runs on some of the ranks, as a piece of a composed algorithm.
#pragma once

#include <string_view>
#include <vector>

#include "collective/choice.hpp"
#include "collective/plan/compose.hpp"
#include "collective/plan/host_topology.hpp"

namespace syncopate::collective {

/// The algorithm, the collective and the number of ranks of a part; `blocks` counts if the algorithm is pipelined.
struct SubPlan {
  std::string_view name;
  Collective collective = Collective::allreduce;
  std::uint32_t size = 1;
  std::uint32_t root = 0;
  std::uint32_t blocks = 1;
};

/// The plan of rank `at` of the part.
[[nodiscard]] Plan plan_of(const SubPlan& part, std::uint32_t at);
/// Adds that plan to `plan`. Here embedding.scale is the number of chunks of the whole in the part's whole vector.
void add_sub_plan(Plan& plan, const SubPlan& part, std::uint32_t at, plan::Embedding embedding);
/// The least number of chunks that the chunks of all parts divide. `between` runs between hosts; each of `within` runs
/// inside every host, whatever its number of ranks. Throws Misuse if the number is unreasonably large.
[[nodiscard]] std::uint32_t common_chunks(const plan::HostTopology& topology, const SubPlan& between,
                                          std::vector<SubPlan> within);

}  // namespace syncopate::collective
