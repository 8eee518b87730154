// Holders: the sleeping processes that keep a lab's namespaces alive, and the way into those namespaces.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace syncopate::tools::lab {

struct HolderOptions {
  int hosts = 1;
  std::string hosts_file;  ///< shown as /etc/hosts on every host
  bool detached = false;   ///< outlives the calling thread
};

struct Holders {
  pid_t bridge = 0;
  std::vector<pid_t> hosts;
};

/// One process for the bridge and, as its children, one per host, each in a network, UTS and mount namespace of its
/// own; without root all of them in a user namespace in which this user is root. Killing the first ends all.
/// Throws SystemFailure where the kernel does not allow it.
[[nodiscard]] Holders start_holders(const HolderOptions& options);

/// Moves the calling process (single-threaded) into the namespaces of `holder`; keeps its working directory, and its
/// death with its parent if it had asked for that. Throws SystemFailure.
void enter_namespaces(pid_t holder);

/// Processes (of those this user may look at) that are in the network namespace of one of `holders`, without them.
[[nodiscard]] std::vector<pid_t> inhabitants(const std::vector<pid_t>& holders);

/// A process's start time in the kernel's words; empty if there is no such process or it is dead.
[[nodiscard]] std::string start_time(pid_t pid);

inline constexpr const char* kHostName = "sync";  ///< host i is sync<i>

}  // namespace syncopate::tools::lab
