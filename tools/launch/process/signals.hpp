// Signals as something to poll: blocked while this object lives, read from a descriptor.
#pragma once

#include <signal.h>

#include <optional>
#include <string>

#include "launch/process/descriptor.hpp"

namespace syncopate::tools::launch::process {

/// SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT and SIGCHLD of the calling thread. The mask it found comes back at the
/// end.
class SignalQueue final {
 public:
  SignalQueue();
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;
  [[nodiscard]] int descriptor() const noexcept { return file_.get(); }
  [[nodiscard]] std::optional<int> next();  ///< does not wait

 private:
  sigset_t before_{};
  Descriptor file_;
};

/// "SIGKILL" for 9.
[[nodiscard]] std::string signal_name(int number);

}  // namespace syncopate::tools::launch::process
