// A timeline of what one rank did: named spans on named tracks, on a clock that starts at zero.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace syncopate {

/// One interval of work on a track. Tracks in use: "forward", "backward", "exchange", "broadcast" (of weights), "wait",
/// "optimizer", "update" (the optimizer on the communication thread), "encode" and "decode" (by a codec) and "planned"
/// (predicted exchanges).
struct Span {
  std::string track;
  std::string name;
  double begin_s = 0;
  double end_s = 0;
  std::uint64_t bytes = 0;  ///< payload, if the work moves any
};

/// Collects spans from any thread. `restart` clears them and sets time zero. Before the first `restart` nothing is
/// recorded.
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

/// The spans of several ranks in Chrome's trace-event format (chrome://tracing, Perfetto): one process per rank.
[[nodiscard]] std::string chrome_trace(const std::vector<std::vector<Span>>& ranks);

}  // namespace syncopate
