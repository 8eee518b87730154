// Mutex, Lock, Condition: those of the standard library, annotated so that clang proves which lock guards a member.
#pragma once

#include <condition_variable>
#include <mutex>

#include "base/clock.hpp"

// clang's -Wthread-safety checks the annotations (check/tidy.py); g++ does not know them.
#ifdef __clang__
#define SYNCOPATE_THREAD_SAFETY(annotation) __attribute__((annotation))
#else
#define SYNCOPATE_THREAD_SAFETY(annotation)
#endif
/// A member that is used only while `mutex` is held.
#define SYNCOPATE_GUARDED_BY(mutex) SYNCOPATE_THREAD_SAFETY(guarded_by(mutex))
/// A function that is called only while `mutex` is held.
#define SYNCOPATE_REQUIRES(mutex) SYNCOPATE_THREAD_SAFETY(requires_capability(mutex))
/// A function whose locking clang cannot follow; it states why.
#define SYNCOPATE_UNCHECKED SYNCOPATE_THREAD_SAFETY(no_thread_safety_analysis)

namespace syncopate::base {

class SYNCOPATE_THREAD_SAFETY(capability("mutex")) Mutex final {
 public:
  void lock() SYNCOPATE_THREAD_SAFETY(acquire_capability()) { mutex_.lock(); }
  void unlock() SYNCOPATE_THREAD_SAFETY(release_capability()) { mutex_.unlock(); }

 private:
  friend class Lock;
  std::mutex mutex_;
};

/// Holds a mutex until the end of its scope.
class SYNCOPATE_THREAD_SAFETY(scoped_lockable) Lock final {
 public:
  explicit Lock(Mutex& mutex) SYNCOPATE_THREAD_SAFETY(acquire_capability(mutex)) : lock_(mutex.mutex_) {}
  ~Lock() SYNCOPATE_THREAD_SAFETY(release_capability()) = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  void unlock() SYNCOPATE_THREAD_SAFETY(release_capability()) { lock_.unlock(); }
  void lock() SYNCOPATE_THREAD_SAFETY(acquire_capability()) { lock_.lock(); }

 private:
  friend class Condition;
  std::unique_lock<std::mutex> lock_;
};

/// Callers wait in a loop that tests what they wait for: clang does not see into a predicate.
class Condition final {
 public:
  void wait(Lock& lock) { changed_.wait(lock.lock_); }
  /// False if the deadline has passed.
  bool wait_until(Lock& lock, Time deadline) {
    if (deadline == kNever) return changed_.wait(lock.lock_), true;
    return changed_.wait_until(lock.lock_, deadline) == std::cv_status::no_timeout;
  }
  void notify_one() noexcept { changed_.notify_one(); }
  void notify_all() noexcept { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace syncopate::base
