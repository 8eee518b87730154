// Scene: the hosts of workers and servers, and the blocks that travel between them.
#pragma once

#include <string_view>
#include <vector>

#include "schedule/timeline.hpp"
#include "server/consistency.hpp"
#include "simulate/server/ports.hpp"
#include "syncopate/simulate.hpp"

namespace syncopate::simulate::server {

/// The order in which a step's bytes travel, and the time at which they start.
enum class Flow : std::uint8_t {
  traditional,  ///< after the backward pass one message to each server; before the forward pass one from each
  wait_free,    ///< each layer's blocks leave when its gradient is ready; its forward pass waits only for them
  front_first,  ///< as wait_free, but waiting blocks of a stream leave in the order of layers, front layers first
};
inline constexpr std::string_view kFlows[] = {"traditional", "wait_free", "front_first"};
[[nodiscard]] Flow flow_named(std::string_view name);  ///< throws Misuse that lists them

/// The unit that is pushed, stored and answered (server/table). It belongs to `layer`, whose forward pass waits for it
/// and whose backward pass ends with its update.
struct Block {
  std::size_t layer = 0, server = 0;
  std::size_t part = 0;  ///< index within its layer on its server
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
