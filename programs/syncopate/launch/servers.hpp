// Servers: the processes of a parameter server that a job is started with, and what its ranks have to know of them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launch/launch.hpp"
#include "launch/process/program.hpp"
#include "launch/runtime_folder.hpp"

namespace syncopate::tools::launch {

/// Each serves under a name that only processes of its host reach; in a lab, where server k runs on host k modulo their
/// number, also at an address for the other hosts.
class Servers final {
 public:
  Servers(const JobOptions& options, const SecretFile& secret);

  /// Environment of ranks and servers on host `host` of the lab.
  [[nodiscard]] std::map<std::string, std::string> environment(int host) const;
  [[nodiscard]] std::vector<process::Program> programs() const;

 private:
  [[nodiscard]] int host_of(int server) const;
  [[nodiscard]] std::string name(int server) const;                    ///< on its own host
  [[nodiscard]] std::string address(int server) const;                 ///< from other hosts of the lab
  [[nodiscard]] std::vector<std::string> addresses(int server) const;  ///< where it listens
  [[nodiscard]] std::vector<std::string> arguments(int server) const;  ///< argv of syncopate-server

  const JobOptions& options_;
  const std::string secret_file_;
  std::string job_;
  std::map<std::string, std::string> environment_;  ///< the same for all
};

}  // namespace syncopate::tools::launch
