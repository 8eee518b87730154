// PortSharing: counts the messages of a host's ranks that pass its port.
#include "collective/port_sharing.hpp"

#include <algorithm>

#include "collective/plan/host_topology.hpp"

namespace syncopate::collective {

namespace {

/// Chunks that leave and that arrive.
struct Traffic {
  std::uint64_t sent = 0, received = 0;

  void add(const PlanStep& step) { (step.act == Act::send ? sent : received) += step.chunk_count; }
  [[nodiscard]] std::uint64_t busier() const { return std::max(sent, received); }
};

double counted(const Algorithm& algorithm, Shape shape, const std::vector<std::uint32_t>& ranks) {
  const std::vector<std::uint32_t> hosts = std::move(shape.hosts);
  shape.hosts.clear();
  Traffic port;
  std::uint64_t busiest = 0;
  for (const std::uint32_t rank : ranks) {
    shape.rank = rank;
    Traffic own;
    for (const PlanStep& step : algorithm.build(shape).steps) {
      own.add(step);
      if (hosts[step.peer] != hosts[rank]) port.add(step);
    }
    busiest = std::max(busiest, own.busier());
  }
  return busiest == 0 ? 1 : std::max(1.0, static_cast<double>(port.busier()) / static_cast<double>(busiest));
}

}  // namespace

double PortSharing::factor(const Algorithm& algorithm, const Shape& shape, const std::vector<std::uint32_t>& hosts) {
  if (hosts.empty() || algorithm.composed) return 1;
  Shape key = shape;
  key.hosts = hosts;
  const auto [known, is_new] = known_.try_emplace({&algorithm, key}, 1.0);
  if (!is_new) return known->second;
  const plan::HostTopology topology(key);
  const auto shared = std::ranges::find_if(topology.members(), [](const auto& ranks) { return ranks.size() > 1; });
  if (shared != topology.members().end()) known->second = counted(algorithm, std::move(key), *shared);
  return known->second;
}

}  // namespace syncopate::collective
