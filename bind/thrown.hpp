// Thrown: a Python exception from a thread of the library, raised again with its traceback in the thread that waits.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "bind.hpp"

namespace syncopate::bind {

/// Its text, which the other ranks get, names `who` and the exception. Copied and destroyed without the GIL.
class Thrown final : public std::runtime_error {
 public:
  /// With the GIL. The local variables of the frames in the traceback are cleared, because they may refer to memory of
  /// the library.
  Thrown(const std::string& who, const nb::python_error& error);
  /// Sets Python's error indicator; with the GIL.
  void raise() const;
  [[nodiscard]] const nb::object& object() const noexcept { return *raised_; }

 private:
  std::shared_ptr<nb::object> raised_;
};

/// While it exists, this thread keeps the last exception that is not an `Exception` of Python, such as
/// KeyboardInterrupt, for a caller of code that reports exceptions instead of passing them on. One at a time.
class Interruption final {
 public:
  Interruption() noexcept;
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  /// Throws what was kept.
  void raise() const;
};

/// Runs `body`, which uses Python, with the GIL. A Python exception must not pass through threads without the GIL.
template <class Body>
decltype(auto) with_gil(const std::string& who, Body&& body) {
  const nb::gil_scoped_acquire acquire;
  try {
    return std::forward<Body>(body)();
  } catch (const nb::python_error& error) {
    throw Thrown(who, error);
  }
}

}  // namespace syncopate::bind
