// TurnThread: the thread of a shell: runs its turns when they are due.
#pragma once

#include <functional>
#include <thread>
#include <utility>

#include "base/guarded.hpp"

namespace syncopate::server {

/// Runs `turn` once it has started, again at the time that the last one returned, and whenever `ask` was called.
class TurnThread final {
 public:
  using Turn = std::function<base::Time()>;

  TurnThread() = default;
  ~TurnThread() { stop(); }
  TurnThread(const TurnThread&) = delete;
  TurnThread& operator=(const TurnThread&) = delete;

  /// Called once. Throws std::system_error if the system has no thread.
  void start(Turn turn) {
    thread_ = std::jthread([this, turn = std::move(turn)](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        const base::Time next = turn();
        is_asked_.wait_until(
            next, [](bool asked) { return asked; }, [](bool& asked) { asked = false; });
      }
    });
  }
  /// Any thread; also before `start`.
  void ask() {
    is_asked_.change([](bool& asked) { asked = true; });
  }
  /// Returns when no turn runs or will.
  void stop() {
    if (!thread_.joinable()) return;
    thread_.request_stop();
    ask();
    thread_.join();
  }

 private:
  base::Guarded<bool> is_asked_;
  std::jthread thread_;
};

}  // namespace syncopate::server
