// Endpoint: all that a rank holds of a group before any collective: who it is, control, and the data links.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/env.hpp"
#include "syncopate/group.hpp"
#include "transport/control.hpp"
#include "transport/launch.hpp"
#include "transport/transport.hpp"

namespace syncopate::transport {

namespace rendezvous {
class Rendezvous;
}

struct Endpoint {
  int rank = 0;
  int size = 1;
  std::string kind;                  ///< "tcp", "shm", "shm+tcp", "inproc"
  bool has_cluster = false;          ///< rank 0 has a cluster file for all
  std::vector<std::string> hosts;    ///< by rank: equal text = same host (boot id and network namespace)
  std::shared_ptr<Control> control;  ///< outlives `links`
  std::unique_ptr<Transport> links;
  /// Joins some ranks of this group, who meet at `meeting`, into a group of their own: as rank `rank` of `size`.
  std::function<Endpoint(int rank, int size, rendezvous::Rendezvous& meeting)> branch{};
};

/// Joins other processes as the options and the environment say (which of them gave rank, size and rendezvous is
/// logged).
[[nodiscard]] Endpoint join_tcp(const GroupOptions& options, const base::Environment& environment);
[[nodiscard]] Endpoint join_tcp(const Launch& launch);
/// `size` ranks in this process.
[[nodiscard]] std::vector<Endpoint> inproc_endpoints(int size, const GroupOptions& options);

}  // namespace syncopate::transport
