// Signals as something to poll: blocked while this object lives, read from a descriptor.
#pragma once

#include <signal.h>

#include <optional>
#include <string>

#include "launch/process/descriptor.hpp"

namespace syncopate::tools::launch::process {

/// SIGINT, SIGTERM, SIGHUP (unless it is ignored), SIGTSTP, SIGCONT and SIGCHLD of the calling thread. Its destructor
/// restores the mask.
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

/// SIGINT, SIGTERM and SIGHUP stay pending while this object lives, for a SignalQueue that is made later.
class HeldSignals final {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_{};
};

/// Whether this process was started by nohup, or as nohup does: then it and its ranks outlive the terminal.
[[nodiscard]] bool hangup_is_ignored() noexcept;

/// "SIGKILL" for 9.
[[nodiscard]] std::string signal_name(int number);

}  // namespace syncopate::tools::launch::process
