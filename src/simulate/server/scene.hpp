// Scene: who stands where, and the blocks that travel between workers and servers.
#pragma once

#include <string_view>
#include <vector>

#include "schedule/timeline.hpp"
#include "server/consistency.hpp"
#include "simulate/server/ports.hpp"
#include "syncopate/simulate.hpp"

namespace syncopate::simulate::server {

/// In which order a step's bytes travel, and how early.
enum class Flow : std::uint8_t {
  traditional,  ///< after the backward pass one message to each server; before the forward pass one from each
  wait_free,    ///< each layer's blocks when its gradient is ready; its forward pass waits for them alone
  front_first,  ///< the same, and of what waits in a stream the front layers leave first
};
inline constexpr std::string_view kFlows[] = {"traditional", "wait_free", "front_first"};
[[nodiscard]] Flow flow_named(std::string_view name);  ///< throws Misuse that lists them

/// What is pushed, kept and answered as a whole (server/table): of `layer`, whose forward pass waits for it, and whose
/// backward pass ends with its update.
struct Block {
  std::size_t layer = 0, server = 0;
  std::size_t part = 0;  ///< of its layer on its server
  double update_bytes = 0, answer_bytes = 0;
};

struct Scene {
  Flow flow = Flow::wait_free;
  std::size_t workers = 1, servers = 1, hosts = 1;
  std::vector<std::size_t> host_of_worker, host_of_server;
  std::vector<Block> blocks;  ///< by layer
  std::size_t layers = 0;
  syncopate::server::Rule rule;
  double significance = 0;
  double load_variation = 0;
};

/// Throws Misuse: unknown names, no servers, or bytes for another number of layers.
[[nodiscard]] Scene scene_of(const schedule::Timeline& timeline, const Cluster& cluster, const ServerScene& asked,
                             Flow flow);

}  // namespace syncopate::simulate::server
