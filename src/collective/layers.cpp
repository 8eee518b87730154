// Layers: grouping ranks by host, and setting plans of parts into the plan of all.
#include "collective/layers.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/require.hpp"

namespace syncopate::collective {

Layers::Layers(const Shape& shape) {
  for (std::uint32_t rank = 0; rank < shape.size; ++rank) {
    const std::uint32_t host = shape.hosts.empty() ? 0 : shape.hosts[rank];
    if (host >= members_.size()) members_.resize(host + 1);
    const auto place = static_cast<std::uint32_t>(members_[host].size());
    if (rank == shape.rank) own_host_ = host, place_ = place;
    if (rank == shape.root) root_host_ = host, root_place_ = place;
    members_[host].push_back(rank);
  }
}

std::vector<std::uint32_t> Layers::leaders() const {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t host = 0; host < hosts(); ++host) ranks.push_back(members_[host][leader_of(host)]);
  return ranks;
}

std::vector<std::uint32_t> Layers::peers_at(std::uint32_t place) const {
  std::vector<std::uint32_t> ranks;
  for (const auto& host : members_) ranks.push_back(host[place]);
  return ranks;
}

std::vector<std::uint32_t> Layers::sizes() const {
  std::set<std::uint32_t> sizes;
  for (const auto& host : members_) sizes.insert(static_cast<std::uint32_t>(host.size()));
  return {sizes.begin(), sizes.end()};
}

std::uint32_t Layers::smallest() const { return sizes().front(); }
std::uint32_t Layers::largest() const { return sizes().back(); }

std::uint32_t Layers::common_chunks(const Part& between, std::vector<Part> within) const {
  constexpr std::uint64_t kMost = 65536;
  std::uint64_t chunks = between.size == 1 ? 1 : plan_of(between, 0).chunks;
  for (const std::uint32_t size : sizes())
    for (Part& part : within) {
      part.size = size;
      part.root = 0;
      if (size > 1) chunks = std::lcm(chunks, std::uint64_t{plan_of(part, 0).chunks});
      base::require(chunks <= kMost,
                    "hierarchical: '{}' within and '{}' between such hosts need {} chunks; allowed: {}", part.name,
                    between.name, chunks, kMost);
    }
  return static_cast<std::uint32_t>(chunks);
}

Plan plan_of(const Part& part, std::uint32_t at) {
  const Shape shape{.collective = part.collective, .size = part.size, .root = part.root};
  return build_plan(choose_part(part.name, shape, {.blocks = std::max(part.blocks, 1U)}, {}), at);
}

void add_part(Plan& plan, const Part& part, std::uint32_t at, Embedding embedding) {
  if (part.size == 1) return;
  const Plan own = plan_of(part, at);
  embedding.scale /= own.chunks;
  embed(plan, own, embedding);
}

}  // namespace syncopate::collective
