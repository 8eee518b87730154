// A timeline of what one rank did: named spans on named tracks, on a clock that starts at zero.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace syncopate {

/// One stretch of work. Tracks in use: "forward", "backward", "exchange", "broadcast" (of weights), "wait",
/// "optimizer", "update": the optimizer on the communication thread, and "planned": exchanges as predicted.
struct Span {
  std::string track;
  std::string name;
  double begin_s = 0;
  double end_s = 0;
  std::uint64_t bytes = 0;  ///< payload moved, where that applies
};

/// Collects spans from any thread. `restart` sets zero and forgets; while not started nothing is kept, at no cost.
class Trace final {
 public:
  Trace();
  ~Trace();
  void restart();
  void stop();
  [[nodiscard]] bool running() const noexcept;
  [[nodiscard]] double now_s() const noexcept;  ///< seconds since `restart`
  void add(Span span);
  [[nodiscard]] std::vector<Span> spans() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Several ranks' spans in Chrome's trace-event format (chrome://tracing, Perfetto): one process per rank.
[[nodiscard]] std::string chrome_trace(const std::vector<std::vector<Span>>& ranks);

}  // namespace syncopate
