// A program to start, and how it is started: own process group, own pipes, dead when its launcher dies.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "launch/process/descriptor.hpp"

namespace syncopate::tools::launch::process {

struct Program {
  std::string name{};                              ///< for its lines and for messages; empty: the rank that it is
  bool attends = false;                            ///< it serves the others, and ends when they have ended
  bool restarts = false;                           ///< it is started again when a signal has killed it
  std::vector<std::string> argv;                   ///< argv[0] is looked up in PATH unless it holds a '/'
  std::map<std::string, std::string> environment;  ///< on top of this process's own
  std::string input;                               ///< what it finds on its standard input: at most 60 000 bytes
  /// Its standard input stays open and takes "INT\n", "TERM\n"…: what stands between us and it forwards no signals.
  bool signals_by_input = false;
  bool blames = false;  ///< it inherits a descriptor on which it may report the rank that failed first (blame.hpp)
  rlim_t descriptors = RLIM_INFINITY;  ///< its limit of them; infinity: this process's
};

struct Started {
  pid_t pid = -1;  ///< also its process group
  Descriptor input;
  Descriptor output;
  Descriptor error;
  Descriptor blame;
};

/// The file that argv[0] names; throws Misuse if there is none that can be executed.
[[nodiscard]] std::string resolve_program(const std::string& name);

/// Starts it. The process is killed when the calling thread ends (PR_SET_PDEATHSIG), so that thread must be one that
/// lives as long as the launcher. Throws Misuse if the program cannot be executed, SystemFailure otherwise.
[[nodiscard]] Started start(const Program& program);

/// Runs a short command to its end; returns what it wrote on stdout. Throws SystemFailure with its stderr when it
/// fails.
std::string run_quietly(const Program& program);

}  // namespace syncopate::tools::launch::process
