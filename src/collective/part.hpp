// Part: an algorithm at work on some of the ranks, as a piece of a composed algorithm.
#pragma once

#include <string_view>
#include <vector>

#include "collective/choice.hpp"
#include "collective/plan/compose.hpp"
#include "collective/plan/host_topology.hpp"

namespace syncopate::collective {

/// What a part of the ranks does: the algorithm `name` with so many blocks, if it has any.
struct Part {
  std::string_view name;
  Collective collective = Collective::allreduce;
  std::uint32_t size = 1;
  std::uint32_t root = 0;
  std::uint32_t blocks = 1;
};

/// The plan of the part's rank `at`.
[[nodiscard]] Plan plan_of(const Part& part, std::uint32_t at);
/// Adds that plan. The part's vector is embedding.scale chunks of the whole; its own chunks are so many fewer.
void add_part(Plan& plan, const Part& part, std::uint32_t at, plan::Embedding embedding);
/// A number of chunks that those of all parts divide, where `between` runs among hosts and each of `within` on the
/// ranks of a host, of any of the sizes; throws Misuse where it is absurd.
[[nodiscard]] std::uint32_t common_chunks(const plan::HostTopology& topology, const Part& between,
                                          std::vector<Part> within);

}  // namespace syncopate::collective
