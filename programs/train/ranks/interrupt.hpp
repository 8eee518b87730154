// SIGINT, SIGTERM and SIGHUP during training: the first signal is noted, and the run ends in order.
// A second SIGINT or SIGTERM ends the process at once.
#pragma once

#include <signal.h>

namespace syncopate::train {

/// Notes signals during its lifetime and restores the previous handlers at its end. At most one exists at a time.
class Interrupt final {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// The signal that this process has received; 0: none.
  [[nodiscard]] int signal() const noexcept;

 private:
  struct sigaction interrupt_before_ {
  }, terminate_before_{}, hangup_before_{};
};

/// Ends the process by the signal, so that its parent sees 128 + signal. Returns if `signal` is 0.
void end_by(int signal);

}  // namespace syncopate::train
