// RowMarks: which pushes of each worker a table of rows contains, and the points where workers wait for each other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/message.hpp"

namespace syncopate::server {

/// A worker's pushes to a table are numbered. A mark is a push without rows: it states that all pushes of a number of
/// steps came before it, or that its worker meets the others. A state machine without clock, thread or wire.
class RowMarks final {
 public:
  RowMarks(std::size_t workers, Clock first_step) : workers_(workers, {.ended = first_step}) {}

  [[nodiscard]] std::uint64_t applied_of(std::size_t worker) const noexcept { return workers_[worker].applied; }
  /// The worker's next push is applied.
  void apply(std::size_t worker, const Message& push);
  /// Another process is that worker from now on, counts its pushes from 1, and participates from step `from` on. The
  /// others wait for it as they waited for the previous one.
  void join(std::size_t worker, Clock from);
  /// The others no longer wait for the worker.
  void leave(std::size_t worker) { workers_[worker].takes_part = false; }
  /// The same process as before: if it had left, the others wait for it again, from the next meeting on.
  void come_back(std::size_t worker);
  /// Whether every worker that takes part has come to this worker's last meeting.
  [[nodiscard]] bool has_met(std::size_t worker) const noexcept;
  [[nodiscard]] bool takes_part(std::size_t worker) const noexcept { return workers_[worker].takes_part; }
  /// The number of steps of which all pushes of every worker that takes part are applied; none if no worker does.
  [[nodiscard]] std::optional<Clock> ended() const noexcept;

  void write_to(std::string& bytes) const;
  [[nodiscard]] std::size_t written_bytes() const noexcept { return workers_.size() * 4 * sizeof(std::uint64_t); }
  /// `bytes` has `written_bytes`. Throws Corrupt.
  void read_from(base::ConstBytes bytes);

 private:
  struct Worker {
    bool takes_part = true;
    std::uint64_t applied = 0;   ///< number of its applied pushes
    std::uint64_t meetings = 0;  ///< that it has come to
    Clock ended = 0;             ///< number of its steps whose pushes are all applied
  };
  [[nodiscard]] std::uint64_t newest_meeting() const noexcept;

  std::vector<Worker> workers_;
};

}  // namespace syncopate::server
