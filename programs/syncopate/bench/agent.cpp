// Agent: a generated script, because mpirun wants one executable without arguments and the lab's hosts are few.
#include "bench/agent.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "syncopate/error.hpp"

namespace syncopate::tools::bench {
namespace {

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char letter : word) text += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return text + "'";
}

}  // namespace

std::string agent_script(const std::vector<Reach>& hosts) {
  std::string script =
      "#!/bin/sh\n"
      "# Runs a command on a host of the lab, called like rsh: agent [OPTIONS] HOST COMMAND...\n"
      "while [ \"${1#-}\" != \"$1\" ]; do\n"
      "  [ \"$1\" = -l ] && shift\n"  // rsh's -l USER is the only option with a value
      "  shift\n"
      "done\n"
      "host=$1\n"
      "shift\n"
      "case $host in\n";
  for (const Reach& reach : hosts) {
    script += fmt::format("  {}) exec", quoted(reach.host));
    for (const std::string& word : reach.prefix) script += fmt::format(" {}", quoted(word));
    script += " sh -c \"$*\" ;;\n";  // like rsh, the words form one command for a shell there
  }
  return script + "esac\necho \"agent: no host $host in the lab\" >&2\nexit 2\n";
}

void write_agent(const std::string& path, const std::vector<Reach>& hosts) {
  std::ofstream file(path);
  file << agent_script(hosts);
  file.close();
  if (!file) throw SystemFailure(fmt::format("cannot write {}", path));
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

}  // namespace syncopate::tools::bench
