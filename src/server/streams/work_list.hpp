// WorkList: the connections that have something for their loop to do, and the wake-up of the loop.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/guarded.hpp"

namespace syncopate::server::streams {

class Connection;

/// Thread-safe. It may outlive its loop.
class WorkList final {
 public:
  /// `wake`: wakes the loop.
  explicit WorkList(std::function<void()> wake) : state_(State{.wake = std::move(wake), .loop = {}, .noted = {}}) {}

  /// The loop will advance this connection. Wakes the loop, unless this thread runs it.
  void add(std::shared_ptr<Connection> connection) {
    state_.with([&](State& state) {
      if (!state.wake) return;
      state.noted.push_back(std::move(connection));
      if (state.noted.size() == 1 && state.loop != std::this_thread::get_id()) state.wake();
    });
  }
  [[nodiscard]] std::vector<std::shared_ptr<Connection>> take() {
    return state_.with([](State& state) { return std::exchange(state.noted, {}); });
  }
  [[nodiscard]] bool is_empty() const {
    return state_.with([](const State& state) { return state.noted.empty(); });
  }
  /// This thread runs the loop from now on.
  void adopt() {
    state_.with([](State& state) { state.loop = std::this_thread::get_id(); });
  }
  /// No thread runs the loop.
  void disown() {
    state_.with([](State& state) { state.loop = {}; });
  }
  [[nodiscard]] bool is_own_thread() const {
    return state_.with([](const State& state) { return state.loop == std::this_thread::get_id(); });
  }
  /// The loop has ended: nothing is noted any more.
  void close() {
    state_.with([](State& state) { state = {}; });
  }

 private:
  struct State {
    std::function<void()> wake;
    std::thread::id loop;
    std::vector<std::shared_ptr<Connection>> noted;
  };
  base::Guarded<State> state_;
};

}  // namespace syncopate::server::streams
