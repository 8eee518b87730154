// Endpoint: what a rank holds of a group before any collective: its identity, control, and the data links.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/env.hpp"
#include "syncopate/group.hpp"
#include "transport/connect/launch.hpp"
#include "transport/membership/control.hpp"
#include "transport/socket/system.hpp"
#include "transport/transport.hpp"

namespace syncopate::transport {

namespace connect::rendezvous {
class Rendezvous;
}

struct Endpoint {
  int rank = 0;
  int size = 1;
  std::string kind;                              ///< "tcp", "shm", "shm+tcp", "inproc"
  bool has_cluster = false;                      ///< rank 0 has a cluster file for all ranks
  bool is_exposed = false;                       ///< connections leave loopback unencrypted
  std::vector<std::string> hosts;                ///< by rank: equal text = same host (boot id and network namespace)
  std::shared_ptr<membership::Control> control;  ///< outlives `links`
  std::unique_ptr<Transport> links;
  const base::Clock* clock = &socket::kernel();  ///< of all waits
  /// Joins some ranks of this group, which meet at `meeting`, into a sub-group: as rank `rank` of `size`.
  std::function<Endpoint(int rank, int size, connect::rendezvous::Rendezvous& meeting)> branch{};
};

/// Joins other processes by the options and the environment. Logs which of them gave rank, size and rendezvous.
[[nodiscard]] Endpoint join_processes(const GroupOptions& options, const base::Environment& environment);
[[nodiscard]] Endpoint join_processes(const connect::Launch& launch);
/// `size` ranks in this process.
[[nodiscard]] std::vector<Endpoint> join_threads(int size, const GroupOptions& options);

}  // namespace syncopate::transport
