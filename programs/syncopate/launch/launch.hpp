// Launching a job: N ranks of one program on this machine, on the hosts of a lab, or on other hosts by ssh.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lab/lab.hpp"
#include "launch/job/supervise.hpp"
#include "launch/place.hpp"

namespace syncopate::tools::launch {

struct JobOptions {
  int ranks = 1;
  std::vector<std::string> program;                ///< argv of every rank
  std::map<std::string, std::string> environment;  ///< for every rank, on top of this process's own
  std::string transport;                           ///< SYNCOPATE_TRANSPORT; empty: not set
  std::string tls;                                 ///< SYNCOPATE_TLS; empty: not set
  std::string interface;                           ///< SYNCOPATE_INTERFACE; empty: what fits the place
  std::string rendezvous;                          ///< SYNCOPATE_RENDEZVOUS; empty: a free port of rank 0's place
  const lab::Lab* lab = nullptr;                   ///< rank r on its host r / ranks_per_host, which it has
  int ranks_per_host = 1;                          ///< of a lab
  std::vector<Place> hosts;                        ///< by ssh, filled in this order; empty: this machine
  int servers = 0;                                 ///< of the parameter server, next to the ranks
  std::string snapshots;                           ///< folder of the servers' snapshots; empty: none
  std::int64_t snapshot_every = 100;               ///< steps
  int replicas = 0;                                ///< of each server, on the next one; then a killed one is replaced
  bool own_servers = false;                        ///< they run `program` too
  std::string config;                              ///< the job's file, for `server_program` too; empty: none
  std::string server_program;                      ///< its path, if there are any and they do not
  job::SuperviseOptions supervise;
};

/// Number of lab hosts that `ranks` ranks fill.
[[nodiscard]] constexpr int lab_hosts(int ranks, int ranks_per_host) noexcept {
  return (ranks + ranks_per_host - 1) / ranks_per_host;
}

/// Starts the ranks with SYNCOPATE_RANK, _SIZE, _LOCAL_RANK, _RENDEZVOUS, _SECRET_FILE, _INTERFACE, _TRANSPORT, _TLS,
/// _BLAME and torch's RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT set, passes every line
/// they write to `sink`, and returns when all have ended (see supervise). The secret is made for this job and removed
/// at its end. Servers are started with them, on this machine or on the lab's hosts in turns; ranks find their
/// addresses in SYNCOPATE_SERVERS, and go on where one of them fails. Throws Misuse (program not found, too few hosts),
/// SystemFailure.
[[nodiscard]] job::End run_job(const JobOptions& options, const job::LineSink& sink);

}  // namespace syncopate::tools::launch
