// The library's threads and the interpreter: waits without the GIL, signals, and what of Python's a thread holds.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

namespace syncopate::bind {

namespace nb = nanobind;

/// How often a wait looks for signals.
inline constexpr std::chrono::milliseconds kBetweenLooks{100};

/// Lets Python's signal handlers run while the main thread waits inside the library, and keeps what a handler raised
/// until the wait has ended. One for a group and its sub-groups. Handlers run on the main thread only, and so only that
/// thread uses what is kept.
class Signals final {
 public:
  /// For GroupOptions::while_waiting: without the GIL, on any thread. Throws if a handler has raised.
  void look();

  /// Runs `wait` without the GIL. If a handler raised meanwhile, throws that.
  template <class Wait>
  decltype(auto) without_gil(Wait&& wait) try {
    const nb::gil_scoped_release release;
    return std::forward<Wait>(wait)();
  } catch (const std::exception&) {
    rethrow_raised();
    throw;
  }

 private:
  void rethrow_raised();

  std::optional<nb::python_error> raised_;
};

/// Waits until `is_over(bound)`, which waits at most `bound`, without the GIL; between calls handlers and `look` run.
/// Throws what one of these raised.
void wait_in_pieces(
    const std::function<bool(std::chrono::milliseconds bound)>& is_over, const std::function<void()>& look = [] {});

/// The result of `make`, which cannot be interrupted and so runs on a thread of its own; if a handler of signals or
/// `look` raises, that thread is left to end within the limit of `make`. It lets `make` go before the result is there:
/// afterwards the interpreter may end, and a thread that needs it then ends the process.
template <class Make>
auto made_on_own_thread(
    Make make, const std::function<void()>& look = [] {}) {
  std::promise<std::invoke_result_t<Make&>> promise;
  auto made = promise.get_future();
  std::thread([make = std::optional(std::move(make)), promise = std::move(promise)]() mutable {
    try {
      auto result = (*make)();
      make.reset();
      promise.set_value(std::move(result));
    } catch (...) {
      make.reset();
      promise.set_exception(std::current_exception());
    }
  }).detach();
  wait_in_pieces([&](std::chrono::milliseconds bound) { return made.wait_for(bound) == std::future_status::ready; },
                 look);
  return made.get();
}

/// Holds something of Python's for a thread of the library, and lets it go with the GIL; in an interpreter that has
/// ended it is left alone.
template <class T>
std::shared_ptr<T> held(std::unique_ptr<T> value) {
  return {value.release(), [](T* kept) {
            if (!nb::is_alive()) return;
            const nb::gil_scoped_acquire acquire;
            delete kept;
          }};
}
template <class T>
std::shared_ptr<T> held(T value) {
  return held(std::make_unique<T>(std::move(value)));
}

}  // namespace syncopate::bind
