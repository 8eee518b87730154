// Signals as something to poll: blocked while this object lives, read from a descriptor.
#include "launch/process/signals.hpp"

#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <string>

namespace syncopate::tools::launch::process {

SignalQueue::SignalQueue() {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : {SIGINT, SIGTERM, SIGTSTP, SIGCONT, SIGCHLD}) sigaddset(&wanted, number);
  if (!hangup_is_ignored()) sigaddset(&wanted, SIGHUP);
  sigprocmask(SIG_BLOCK, &wanted, &before_);
  file_ = Descriptor(signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!file_.open()) fail("cannot receive signals");
}

SignalQueue::~SignalQueue() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

std::optional<int> SignalQueue::next() {
  signalfd_siginfo about{};
  if (read(file_.get(), &about, sizeof about) != sizeof about) return std::nullopt;
  return static_cast<int>(about.ssi_signo);
}

HeldSignals::HeldSignals() {
  sigset_t held;
  sigemptyset(&held);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&held, number);
  sigprocmask(SIG_BLOCK, &held, &before_);
}

HeldSignals::~HeldSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

bool hangup_is_ignored() noexcept {
  struct sigaction now {};
  return sigaction(SIGHUP, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

std::string signal_name(int number) {
  const char* name = sigabbrev_np(number);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(number);
}

}  // namespace syncopate::tools::launch::process
