// Scene: the production setup of a model's layers, and the bytes of the blocks that follow from it.
#include "simulate/server/scene.hpp"

#include <algorithm>
#include <numeric>

#include "base/require.hpp"
#include "server/placement.hpp"

namespace syncopate::simulate::server {

namespace {

namespace production = syncopate::server;

/// Wire bytes of a layer, relative to its size.
double share_of(const std::vector<std::uint64_t>& wire, const schedule::Timeline& timeline, std::size_t layer) {
  if (wire.empty()) return 1;
  base::require(wire.size() == timeline.layers.size(), "wire bytes of {} layers; allowed: of all {}", wire.size(),
                timeline.layers.size());
  const auto bytes = static_cast<double>(timeline.layers[layer].bytes);
  return bytes > 0 ? static_cast<double>(wire[layer]) / bytes : 0;
}

void place_hosts(Scene& scene, const Cluster& cluster, const ServerScene& asked) {
  const auto workers = static_cast<std::size_t>(cluster.ranks);
  const auto per_host = static_cast<std::size_t>(std::max(cluster.ranks_per_host, 1));
  const std::size_t worker_hosts = (workers + per_host - 1) / per_host;
  scene.servers = asked.servers > 0 ? static_cast<std::size_t>(asked.servers) : worker_hosts;
  scene.hosts = worker_hosts + (asked.own_hosts ? scene.servers : 0);
  for (std::size_t worker = 0; worker < workers; ++worker) scene.host_of_worker.push_back(worker / per_host);
  for (std::size_t server = 0; server < scene.servers; ++server)
    scene.host_of_server.push_back(asked.own_hosts ? worker_hosts + server : server % worker_hosts);
}

/// Returns the loads of the servers.
std::vector<std::size_t> place_blocks(Scene& scene, const schedule::Timeline& timeline, const ServerScene& asked) {
  std::vector<std::size_t> loads(scene.servers);
  scene.bytes.resize(scene.servers);
  for (const production::Block& block : blocks_of(scene.setup)) {
    const std::size_t bytes = block.elements.size() * sizeof(float);
    const auto size = static_cast<double>(bytes);
    loads[block.server] += bytes;
    scene.bytes[block.server].push_back({.values = size,
                                         .update = size * share_of(asked.update_bytes, timeline, block.table),
                                         .answer = size * share_of(asked.answer_bytes, timeline, block.table)});
    ++scene.blocks;
  }
  return loads;
}

/// Joins each server's blocks to one. Servers without a block leave the job.
void join_blocks(Scene& scene) {
  std::vector<std::vector<BlockBytes>> joined;
  std::vector<std::size_t> hosts;
  for (std::size_t server = 0; server < scene.servers; ++server) {
    if (scene.bytes[server].empty()) continue;
    BlockBytes& all = joined.emplace_back(1).front();
    for (const BlockBytes& block : scene.bytes[server])
      all = {all.values + block.values, all.update + block.update, all.answer + block.answer};
    hosts.push_back(scene.host_of_server[server]);
  }
  scene.blocks = scene.setup.servers = joined.size();
  scene.setup.placement = "uniform";
  scene.setup.tables = {{.name = "all", .elements = joined.size()}};
  scene.bytes = std::move(joined);
  scene.host_of_server = std::move(hosts);
}

}  // namespace

Scene scene_of(const schedule::Timeline& timeline, const Cluster& cluster, const ServerScene& asked,
               const std::string& flow) {
  base::require(asked.servers >= 0 && asked.servers <= static_cast<int>(production::kMostWorkers),
                "{} servers; allowed: 1 to {}", asked.servers, production::kMostWorkers);
  base::require(asked.significance >= 0, "a significance of {}; allowed: 0 or more", asked.significance);
  for (const CodingCost* coding : {&asked.update_coding, &asked.answer_coding})
    base::require(coding->encode_s_per_byte >= 0 && coding->decode_s_per_byte >= 0,
                  "codec {} encodes a byte in {} s and decodes it in {}; allowed: 0 or more", coding->codec,
                  coding->encode_s_per_byte, coding->decode_s_per_byte);
  Scene scene{.no_values = {asked.significance},
              .update_coding = asked.update_coding,
              .answer_coding = asked.answer_coding,
              .layers = timeline.layers.size()};
  place_hosts(scene, cluster, asked);
  scene.setup = {.tables = {},
                 .workers = scene.host_of_worker.size(),
                 .servers = scene.servers,
                 .placement = asked.placement,
                 .consistency = asked.consistency,
                 .flow = flow,
                 .optimizer = "sgd"};
  for (const schedule::Layer& layer : timeline.layers)
    scene.setup.tables.push_back({.name = std::to_string(scene.setup.tables.size()),
                                  .elements = (layer.bytes + sizeof(float) - 1) / sizeof(float)});
  scene.load_variation = production::variation_of(place_blocks(scene, timeline, asked));
  if (production::flow_named(flow) == production::Flow::traditional) join_blocks(scene);
  return scene;
}

}  // namespace syncopate::simulate::server

namespace syncopate {

namespace {

/// Bytes of each layer by `bytes_of`, for the blocks of a job with one table.
template <class BytesOf>
std::vector<std::uint64_t> bytes_of_layers(const Profile& profile, server::Setup setup, BytesOf bytes_of) {
  const server::JobRules rules(setup);
  setup.tables.resize(1);
  std::vector<std::uint64_t> all;
  for (const ProfileLayer& layer : profile.layers) {
    setup.tables.front() = {.name = "layer", .elements = layer.bytes / sizeof(float), .rows = rows_of(layer)};
    double bytes = 0;
    for (const server::Block& block : blocks_of(setup)) bytes += bytes_of(rules, block);
    all.push_back(static_cast<std::uint64_t>(bytes));
  }
  return all;
}

}  // namespace

std::vector<std::uint64_t> expected_updates(const Profile& profile, const std::string& codec) {
  if (codec == "none") return {};
  return bytes_of_layers(profile, {.coding = {.codec = codec}},
                         [](const auto& rules, const auto& block) { return rules.expected_update(block); });
}

std::vector<std::uint64_t> expected_answers(const Profile& profile, const std::string& codec) {
  if (codec == "none") return {};
  return bytes_of_layers(profile, {.answers = codec},
                         [](const auto& rules, const auto& block) { return rules.expected_answer(block); });
}

}  // namespace syncopate
