// Scene: production's placement, cut into blocks like tables.
#include "simulate/server/scene.hpp"

#include <algorithm>
#include <map>

#include "base/named.hpp"
#include "base/require.hpp"
#include "server/placement.hpp"

namespace syncopate::simulate::server {

namespace {

namespace production = syncopate::server;

constexpr std::size_t kGrainBytes = 4;
/// A block's weights are at most a message's body (server/message).
constexpr std::size_t kMostBlockBytes = std::size_t{1} << 20;

/// Wire bytes of a layer, relative to its size.
double share_of(const std::vector<std::uint64_t>& wire, const schedule::Timeline& timeline, std::size_t layer) {
  if (wire.empty()) return 1;
  base::require(wire.size() == timeline.layers.size(), "wire bytes of {} layers; allowed: of all {}", wire.size(),
                timeline.layers.size());
  const auto bytes = static_cast<double>(timeline.layers[layer].bytes);
  return bytes > 0 ? static_cast<double>(wire[layer]) / bytes : 0;
}

std::vector<Block> blocks_of(const schedule::Timeline& timeline, const ServerScene& asked,
                             const std::vector<production::Shard>& shards) {
  std::vector<Block> blocks;
  for (const production::Shard& shard : shards) {
    const std::size_t bytes = shard.end - shard.begin;
    const std::size_t parts = (bytes + kMostBlockBytes - 1) / kMostBlockBytes;
    const double each = static_cast<double>(bytes) / static_cast<double>(parts);
    for (std::size_t part = 0; part < parts; ++part)
      blocks.push_back({.layer = shard.table,
                        .server = shard.server,
                        .part = part,
                        .update_bytes = each * share_of(asked.update_bytes, timeline, shard.table),
                        .answer_bytes = each * share_of(asked.answer_bytes, timeline, shard.table)});
  }
  return blocks;
}

/// One block per server. It leaves after the whole backward pass, and the whole forward pass waits for it.
std::vector<Block> joined(const std::vector<Block>& blocks) {
  std::map<std::size_t, Block> whole;
  for (const Block& block : blocks) {
    Block& all = whole[block.server];
    all.server = block.server;
    all.update_bytes += block.update_bytes;
    all.answer_bytes += block.answer_bytes;
  }
  std::vector<Block> result;
  for (const auto& [server, block] : whole) result.push_back(block);
  return result;
}

}  // namespace

Flow flow_named(std::string_view name) {
  const auto found = std::ranges::find(kFlows, name);
  base::require(found != std::end(kFlows),
                "flow '{}' of a parameter server does not exist; allowed: traditional, wait_free, front_first", name);
  return static_cast<Flow>(found - std::begin(kFlows));
}

Scene scene_of(const schedule::Timeline& timeline, const Cluster& cluster, const ServerScene& asked, Flow flow) {
  const auto workers = static_cast<std::size_t>(cluster.ranks);
  const auto per_host = static_cast<std::size_t>(std::max(cluster.ranks_per_host, 1));
  const std::size_t worker_hosts = (workers + per_host - 1) / per_host;
  base::require(asked.servers >= 0 && asked.servers <= 65536, "{} servers; allowed: 1 to 65536", asked.servers);
  base::require(asked.significance >= 0, "a significance of {}; allowed: 0 or more", asked.significance);
  Scene scene{.flow = flow,
              .workers = workers,
              .servers = asked.servers > 0 ? static_cast<std::size_t>(asked.servers) : worker_hosts,
              .layers = timeline.layers.size(),
              .rule = production::rule_of(asked.consistency),
              .significance = asked.significance};
  scene.hosts = worker_hosts + (asked.own_hosts ? scene.servers : 0);
  for (std::size_t worker = 0; worker < workers; ++worker) scene.host_of_worker.push_back(worker / per_host);
  for (std::size_t server = 0; server < scene.servers; ++server)
    scene.host_of_server.push_back(asked.own_hosts ? worker_hosts + server : server % worker_hosts);
  std::vector<std::size_t> bytes;
  for (const schedule::Layer& layer : timeline.layers)
    bytes.push_back((layer.bytes + kGrainBytes - 1) / kGrainBytes * kGrainBytes);
  const auto shards =
      production::shards_of(production::placement_named(asked.placement), {bytes, scene.servers, kGrainBytes});
  scene.load_variation = production::variation_of(production::loads_of(shards, scene.servers));
  scene.blocks = blocks_of(timeline, asked, shards);
  if (flow == Flow::traditional) scene.blocks = joined(scene.blocks);
  return scene;
}

}  // namespace syncopate::simulate::server
