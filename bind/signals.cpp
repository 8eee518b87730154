// Signals during waits: the interpreter checks for them, on its main thread, with the GIL held.
#include "signals.hpp"

#include <unistd.h>

#include <stdexcept>
#include <utility>

namespace syncopate::bind {

void Signals::look() {
  if (::gettid() != ::getpid()) return;  // no handler runs elsewhere
  const nb::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() == 0) return;
  raised_.emplace();
  throw std::runtime_error("its program was interrupted: " +
                           nb::cast<std::string>(nb::str(raised_->type().attr("__name__"))));
}

void Signals::rethrow_raised() {
  if (::gettid() != ::getpid() || !raised_) return;
  throw nb::python_error(*std::exchange(raised_, std::nullopt));
}

void wait_in_pieces(const std::function<bool(std::chrono::milliseconds bound)>& is_over,
                    const std::function<void()>& look) {
  while (true) {
    const bool over = [&] {
      const nb::gil_scoped_release release;
      return is_over(kBetweenLooks);
    }();
    if (over) return;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    look();
  }
}

}  // namespace syncopate::bind
