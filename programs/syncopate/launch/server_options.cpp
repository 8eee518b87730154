// The options for servers: how many, and how what they keep survives them.
#include "launch/server_options.hpp"

#include "arguments.hpp"

namespace syncopate::tools::launch {

void add_server_options(CLI::App& app, JobOptions& job) {
  app.add_option("--servers", job.servers, "Number of servers of the parameter server to start with the ranks")
      ->check(between(0, 1024))
      ->capture_default_str();
  app.add_flag("--own-servers", job.own_servers,
               "Servers run PROGRAM too, which serves with its own components where SYNCOPATE_SERVER is set");
  app.add_option("--replicas", job.replicas,
                 "1: each server's tables are kept by the next one too, and a server that is killed is replaced")
      ->check(between(0, 1))
      ->capture_default_str();
  app.add_option("--snapshots", job.snapshots,
                 "Folder: servers write snapshots there; the same job started again goes on from the newest of all")
      ->type_name("FOLDER");
  app.add_option("--snapshot-every", job.snapshot_every, "Steps from snapshot to snapshot")
      ->check(at_least(std::int64_t{1}))
      ->capture_default_str();
}

}  // namespace syncopate::tools::launch
