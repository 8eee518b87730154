// Guarded<T>: a value that is accessible only while its mutex is held.
#pragma once

#include <condition_variable>
#include <mutex>

#include "base/clock.hpp"

namespace syncopate::base {

template <class T>
class Guarded final {
 public:
  Guarded() = default;
  explicit Guarded(T value) : value_(std::move(value)) {}

  /// Runs `f(value)` under the lock.
  template <class F>
  decltype(auto) with(F&& f) {
    std::lock_guard lock(mutex_);
    return std::forward<F>(f)(value_);
  }
  template <class F>
  decltype(auto) with(F&& f) const {
    std::lock_guard lock(mutex_);
    return std::forward<F>(f)(value_);
  }
  /// Runs `f(value)` under the lock, then wakes every `wait_until`.
  template <class F>
  void change(F&& f) {
    {
      std::lock_guard lock(mutex_);
      std::forward<F>(f)(value_);
    }
    changed_.notify_all();
  }
  /// Waits until `ready(value)` or the deadline; then runs `f(value)` if ready. Returns whether it was.
  template <class Ready, class F>
  bool wait_until(Time deadline, Ready&& ready, F&& f) {
    std::unique_lock lock(mutex_);
    const auto test = [&] { return ready(value_); };
    if (deadline == kNever) {
      changed_.wait(lock, test);
    } else if (!changed_.wait_until(lock, deadline, test)) {
      return false;
    }
    std::forward<F>(f)(value_);
    return true;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  T value_{};
};

}  // namespace syncopate::base
