// Guarded<T>: a value that is accessible only while its mutex is held.
#pragma once

#include <utility>

#include "base/mutex.hpp"

namespace syncopate::base {

template <class T>
class Guarded final {
 public:
  Guarded() = default;
  explicit Guarded(T value) : value_(std::move(value)) {}

  /// Runs `f(value)` under the lock.
  template <class F>
  decltype(auto) with(F&& f) {
    const Lock lock(mutex_);
    return std::forward<F>(f)(value_);
  }
  template <class F>
  decltype(auto) with(F&& f) const {
    const Lock lock(mutex_);
    return std::forward<F>(f)(value_);
  }
  /// Runs `f(value)` under the lock, then wakes every `wait_until`.
  template <class F>
  void change(F&& f) {
    {
      const Lock lock(mutex_);
      std::forward<F>(f)(value_);
    }
    changed_.notify_all();
  }
  /// Waits until `ready(value)` or the deadline; then runs `f(value)` if ready. Returns whether it was.
  template <class Ready, class F>
  bool wait_until(Time deadline, Ready&& ready, F&& f) {
    Lock lock(mutex_);
    while (!ready(value_))
      if (!changed_.wait_until(lock, deadline) && !ready(value_)) return false;
    std::forward<F>(f)(value_);
    return true;
  }

 private:
  mutable Mutex mutex_;
  Condition changed_;
  T value_ SYNCOPATE_GUARDED_BY(mutex_){};
};

}  // namespace syncopate::base
