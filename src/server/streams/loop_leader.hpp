// LoopLeader: whether a waiting caller or the streams' own thread runs the loop.
#pragma once

#include <functional>
#include <stop_token>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "server/streams/loop.hpp"
#include "transport/backoff.hpp"

namespace syncopate::server::streams {

/// A caller that runs the loop while it waits reads its message itself, and no thread has to wake another. The thread
/// runs the loop when no caller has waited for kRest, so a caller that returns sooner wakes no thread.
///
/// The thread that runs the loop polls for a short time after a small message before it sleeps, and yields its core:
/// the next message often follows, and a wake-up takes 5 to 50 us.
class LoopLeader final {
 public:
  LoopLeader(EndOptions options, Accepted accepted);
  LoopLeader(const LoopLeader&) = delete;
  LoopLeader& operator=(const LoopLeader&) = delete;

  [[nodiscard]] Loop& loop() noexcept { return loop_; }
  /// The thread. Returns after a stop and `wake`; no caller may wait then, and the loop is the thread's from then on.
  void serve(const std::stop_token& stop);
  /// A caller. Returns `is_over()`, when it is true or at the deadline. `is_over` runs under this class's lock and must
  /// not throw. Its result changes in callbacks of streams; a change elsewhere is followed by `wake`.
  bool wait(base::Time deadline, const std::function<bool()>& is_over);
  /// Any thread: the loop has something to do, or a caller has something to see.
  void wake();

 private:
  void turn(base::Time deadline);

  const base::Duration spin_;
  const Log log_;
  base::Mutex mutex_;
  base::Condition free_;                                  ///< callers wait for the loop
  base::Condition due_;                                   ///< the thread waits for its turn
  bool is_taken_ SYNCOPATE_GUARDED_BY(mutex_) = false;    ///< a thread runs the loop
  bool is_awaited_ SYNCOPATE_GUARDED_BY(mutex_) = false;  ///< the thread waits for callers to leave
  int callers_ SYNCOPATE_GUARDED_BY(mutex_) = 0;          ///< in `wait`
  base::Time rest_until_ SYNCOPATE_GUARDED_BY(mutex_){};  ///< until then the thread leaves the loop to callers

  // Used by the thread that runs the loop.
  base::Time awake_until_{};
  transport::Backoff backoff_;

  Loop loop_;  ///< destroyed first: it calls `wake`
};

}  // namespace syncopate::server::streams
