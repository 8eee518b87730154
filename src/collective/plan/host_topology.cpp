// HostTopology: grouping ranks by host.
#include "collective/plan/host_topology.hpp"

#include <set>

namespace syncopate::collective::plan {

HostTopology::HostTopology(const Shape& shape) {
  for (std::uint32_t rank = 0; rank < shape.size; ++rank) {
    const std::uint32_t host = shape.hosts.empty() ? 0 : shape.hosts[rank];
    if (host >= members_.size()) members_.resize(host + 1);
    const auto place = static_cast<std::uint32_t>(members_[host].size());
    if (rank == shape.rank) own_host_ = host, place_ = place;
    if (rank == shape.root) root_host_ = host, root_place_ = place;
    members_[host].push_back(rank);
  }
}

std::vector<std::uint32_t> HostTopology::leaders() const {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t host = 0; host < hosts(); ++host) ranks.push_back(members_[host][leader_of(host)]);
  return ranks;
}

std::vector<std::uint32_t> HostTopology::peers_at(std::uint32_t place) const {
  std::vector<std::uint32_t> ranks;
  for (const auto& host : members_) ranks.push_back(host[place]);
  return ranks;
}

std::vector<std::uint32_t> HostTopology::sizes() const {
  std::set<std::uint32_t> sizes;
  for (const auto& host : members_) sizes.insert(static_cast<std::uint32_t>(host.size()));
  return {sizes.begin(), sizes.end()};
}

std::uint32_t HostTopology::smallest() const { return sizes().front(); }
std::uint32_t HostTopology::largest() const { return sizes().back(); }

}  // namespace syncopate::collective::plan
