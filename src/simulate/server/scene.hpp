// Scene: a job of the production server, the hosts of its workers and servers, and the bytes of its messages.
#pragma once

#include <string>
#include <vector>

#include "server/job/setup.hpp"
#include "syncopate/policy.hpp"
#include "syncopate/simulate.hpp"

namespace syncopate::simulate::server {

/// Bytes of a block's messages.
struct BlockBytes {
  double values = 0, update = 0, answer = 0;  ///< of its weights, and on the wire
};

struct Scene {
  /// A table for each layer. Flow traditional: one table, of the first layer, which has one block on each server that
  /// keeps weights: one message to each server, and one from each.
  syncopate::server::Setup setup{};
  syncopate::server::NoValues no_values{};
  std::vector<std::vector<BlockBytes>> bytes{};  ///< by server and by the index of its block
  std::vector<std::size_t> host_of_worker{}, host_of_server{};
  CodingCost update_coding{}, answer_coding{};
  std::size_t servers = 1, hosts = 1, layers = 0, blocks = 0;
  double load_variation = 0;
};

/// Throws Misuse: unknown names, no servers, or bytes for another number of layers.
[[nodiscard]] Scene scene_of(const schedule::Timeline& timeline, const Cluster& cluster, const ServerScene& asked,
                             const std::string& flow);

}  // namespace syncopate::simulate::server
