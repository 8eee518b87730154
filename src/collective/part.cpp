// Parts: their plans, and the embedding in the plan of all ranks.
#include "collective/part.hpp"

#include <algorithm>
#include <numeric>

#include "base/require.hpp"

namespace syncopate::collective {

Plan plan_of(const SubPlan& part, std::uint32_t at) {
  const Shape shape{.collective = part.collective, .size = part.size, .root = part.root};
  return build_plan(choose_part(part.name, shape, {.blocks = std::max(part.blocks, 1U)}, {}), at);
}

void add_sub_plan(Plan& plan, const SubPlan& part, std::uint32_t at, plan::Embedding embedding) {
  if (part.size == 1) return;
  const Plan own = plan_of(part, at);
  embedding.scale /= own.chunks;
  plan::embed(plan, own, embedding);
}

std::uint32_t common_chunks(const plan::HostTopology& topology, const SubPlan& between, std::vector<SubPlan> within) {
  constexpr std::uint64_t kMost = 65536;
  std::uint64_t chunks = between.size == 1 ? 1 : plan_of(between, 0).chunks;
  for (const std::uint32_t size : topology.sizes())
    for (SubPlan& part : within) {
      part.size = size;
      part.root = 0;
      if (size > 1) chunks = std::lcm(chunks, std::uint64_t{plan_of(part, 0).chunks});
      base::require(chunks <= kMost,
                    "hierarchical: '{}' within and '{}' between such hosts need {} chunks; allowed: at most {}",
                    part.name, between.name, chunks, kMost);
    }
  return static_cast<std::uint32_t>(chunks);
}

}  // namespace syncopate::collective
