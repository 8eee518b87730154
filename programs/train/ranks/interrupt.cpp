// The signal handler. A handler can only reach memory of static duration, hence the one variable.
#include "ranks/interrupt.hpp"

namespace syncopate::train {
namespace {

volatile sig_atomic_t noted = 0;

/// A second SIGINT or SIGTERM ends the process. A closed terminal may send SIGHUP twice, from the kernel and from the
/// shell: the second one has no effect.
void note(int number) {
  if (noted == 0) noted = number;
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
}

}  // namespace

Interrupt::Interrupt() {
  noted = 0;
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, &interrupt_before_);
  ::sigaction(SIGTERM, &action, &terminate_before_);
  ::sigaction(SIGHUP, nullptr, &hangup_before_);
  if (hangup_before_.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);  // nohup: the run goes on
}

Interrupt::~Interrupt() {
  ::sigaction(SIGINT, &interrupt_before_, nullptr);
  ::sigaction(SIGTERM, &terminate_before_, nullptr);
  ::sigaction(SIGHUP, &hangup_before_, nullptr);
}

int Interrupt::signal() const noexcept { return noted; }

void end_by(int number) {
  if (number == 0) return;
  ::signal(number, SIG_DFL);
  ::raise(number);
}

}  // namespace syncopate::train
