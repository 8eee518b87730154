// Agent: the program by which an MPI's launcher reaches the other hosts of a lab, in the place of ssh.
#pragma once

#include <string>
#include <vector>

namespace syncopate::tools::bench {

/// One host: how the launcher names it, and the words that run a command on it.
struct Reach {
  std::string host;
  std::vector<std::string> prefix;
};

/// The agent as a shell script: called as `agent [OPTIONS] HOST COMMAND…`, the way rsh and ssh are.
[[nodiscard]] std::string agent_script(const std::vector<Reach>& hosts);

/// Writes it, executable, to `path`.
void write_agent(const std::string& path, const std::vector<Reach>& hosts);

}  // namespace syncopate::tools::bench
