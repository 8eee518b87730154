// Guardian: a small process that outlives a killed launcher just long enough to clean up behind it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "launch/process/descriptor.hpp"

namespace syncopate::tools::launch::process {

/// PR_SET_PDEATHSIG ends every rank with its launcher, but processes that a rank has started, and the job's files,
/// would remain. The guardian waits on a pipe: when the launcher dies without a message, it kills the registered
/// process groups and removes the files.
class Guardian final {
 public:
  explicit Guardian(std::vector<std::string> files);
  ~Guardian();  ///< dismisses it: the launcher itself has cleaned up
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;
  void watch(pid_t group);

 private:
  Descriptor orders_;
  pid_t pid_ = -1;
};

}  // namespace syncopate::tools::launch::process
