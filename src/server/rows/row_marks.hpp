// RowMarks: which pushes of each worker a table of rows contains, and the points where workers wait for each other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/message.hpp"

namespace syncopate::server {

/// A worker's pushes to a table are numbered. A mark is a push without rows: it states that all pushes of a number of
/// steps came before it, or that its worker meets the others, or both. A meeting of steps is that number of steps, so
/// that a worker which was away cannot count it twice. The other meetings are those of visits: the begin of a visit has
/// an odd number, its end the next even one; all workers number the same one alike. No worker waits for one that
/// returns, or for a process in a worker's place, at the meetings of the visit that is in progress and at earlier ones.
/// A state machine without clock, thread or wire.
class RowMarks final {
 public:
  RowMarks(std::size_t workers, Clock first_step) : workers_(workers, {.ended = first_step}) { find_common(); }

  [[nodiscard]] std::uint64_t applied_of(std::size_t worker) const noexcept { return workers_[worker].applied; }
  /// The process whose pushes are counted; 0: none has joined.
  [[nodiscard]] std::uint64_t process_of(std::size_t worker) const noexcept { return workers_[worker].process; }
  /// The worker's next push is applied.
  void apply(std::size_t worker, const RowPush& push);
  /// This process is that worker from now on, counts its pushes from 1, and participates from step `from` on, and if it
  /// replaces another one, from the next visit on, but not before the meeting after `meeting`. May be repeated.
  void join(std::size_t worker, Clock from, std::uint64_t process, std::uint64_t meeting = 0);
  /// The others no longer wait for the worker.
  void leave(std::size_t worker);
  /// The same process as before: if it had left, the others wait for it again: for its mark of every step that they
  /// have not ended together, and from the next visit on.
  void come_back(std::size_t worker);
  /// The meetings and the steps that every worker that takes part has come to.
  struct Common {
    std::uint64_t meetings = 0;
    Clock ended = 0;
    [[nodiscard]] bool operator==(const Common&) const = default;
  };
  /// None if no worker takes part. While it does not change, no other worker's wait ends by a worker's mark.
  [[nodiscard]] const std::optional<Common>& common() const noexcept { return common_; }
  /// The last meeting of a visit that the worker has come to, or is excused from.
  [[nodiscard]] std::uint64_t meeting_of(std::size_t worker) const noexcept { return workers_[worker].meetings; }
  /// Whether every worker that takes part has come to this worker's last meetings.
  [[nodiscard]] bool has_met(std::size_t worker) const noexcept;
  [[nodiscard]] bool takes_part(std::size_t worker) const noexcept { return workers_[worker].takes_part; }
  /// The number of steps of which all pushes of every worker that takes part are applied; none if no worker does.
  [[nodiscard]] std::optional<Clock> ended() const noexcept;

  void write_to(std::string& bytes) const;
  [[nodiscard]] std::size_t written_bytes() const noexcept { return workers_.size() * 6 * sizeof(std::uint64_t); }
  /// `bytes` has `written_bytes`. Throws Corrupt.
  void read_from(base::ConstBytes bytes);

 private:
  struct Worker {
    bool takes_part = true;
    std::uint64_t process = 0;
    std::uint64_t applied = 0;   ///< number of its applied pushes
    std::uint64_t meetings = 0;  ///< the last begin or end of a visit that it has come to, or is excused from
    std::uint64_t excused = 0;   ///< `meetings` less the last one that it has come to, and waits for
    Clock ended = 0;             ///< number of its steps whose pushes are all applied
    Clock met = 0;               ///< number of steps of its last meeting that has one
  };
  static void meet(Worker& own, const MarkRows& mark);
  [[nodiscard]] std::uint64_t newest_meeting() const noexcept;
  void find_common();

  std::vector<Worker> workers_;
  std::optional<Common> common_;
};

}  // namespace syncopate::server
