// SIGINT, SIGTERM and SIGHUP while a run trains: the first is noted, so that the run can end in order. A second SIGINT
// or SIGTERM ends it at once.
#pragma once

#include <signal.h>

namespace syncopate::train {

/// Notes signals from its construction to its end; before and after they do what they did. One at a time.
class Interrupt final {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// The signal that has come to this process; 0: none.
  [[nodiscard]] int signal() const noexcept;

 private:
  struct sigaction interrupt_before_ {
  }, terminate_before_{}, hangup_before_{};
};

/// Ends the process as the signal would have, so that whoever started it sees 128 + signal. Returns for 0.
void end_by(int signal);

}  // namespace syncopate::train
