// A handler for the first signal. A handler reaches nothing but memory of static duration: hence the one variable.
#include "ranks/interrupt.hpp"

namespace syncopate::train {
namespace {

volatile sig_atomic_t noted = 0;

/// SA_RESETHAND covers a second signal of the same number only.
void note(int number) {
  noted = number;
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
}

Interrupt::~Interrupt() {
  ::sigaction(SIGINT, &interrupt_before_, nullptr);
  ::sigaction(SIGTERM, &terminate_before_, nullptr);
}

int Interrupt::signal() const noexcept { return noted; }

void end_by(int number) {
  if (number == 0) return;
  ::signal(number, SIG_DFL);
  ::raise(number);
}

}  // namespace syncopate::train
