// Scene: a job of the production server, the hosts of its workers and servers, and the bytes of its messages.
#pragma once

#include <string_view>
#include <vector>

#include "server/job/setup.hpp"
#include "syncopate/policy.hpp"
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

/// Bytes of a block's messages.
struct BlockBytes {
  double update = 0, answer = 0;
};

struct Scene {
  Flow flow = Flow::wait_free;
  /// A table for each layer. Flow traditional: one table, of the first layer, which has one block on each server that
  /// keeps weights. So it leaves after the whole backward pass, and the whole forward pass waits for it.
  syncopate::server::Setup setup{};
  syncopate::server::NoValues no_values{};
  std::vector<std::vector<BlockBytes>> bytes{};  ///< by server and by the index of its block
  std::vector<std::size_t> host_of_worker{}, host_of_server{};
  std::size_t servers = 1, hosts = 1, layers = 0, blocks = 0;
  double load_variation = 0;
};

/// Throws Misuse: unknown names, no servers, or bytes for another number of layers.
[[nodiscard]] Scene scene_of(const schedule::Timeline& timeline, const Cluster& cluster, const ServerScene& asked,
                             Flow flow);

}  // namespace syncopate::simulate::server
