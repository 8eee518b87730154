// WorkerRows: a worker's pulls and pushes of rows: what travels to each server, and what is sent again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "server/job/setup.hpp"
#include "server/request.hpp"
#include "server/rows/row_split.hpp"

namespace syncopate::server {

/// Without wire, clock or waiting. Law: a worker's pushes to a table and server are numbered, kept until the server has
/// acknowledged them, and sent again on another stream before all later requests; a pull is answered after all pushes
/// before it. `receive` and `repeat` may be called from any thread; the others by the program's thread. `send` is
/// called with a lock held, and must not block.
class WorkerRows final {
 public:
  using Send = std::function<void(Request)>;
  /// `waits`: in lockstep a worker waits for the others before its first push after a step of a snapshot.
  WorkerRows(const Setup& setup, Send send, bool waits = false);

  /// Sends the sum of the gradients of each id to its server. Throws Misuse for a table or lengths that do not fit.
  void push(std::size_t table, std::span<const std::uint64_t> ids, std::span<const float> gradients, double rate);
  /// As `push`, rows with their state, of which the servers take those that they lack. Throws Misuse also for rows of
  /// another rule.
  void restore(std::size_t table, const KeptRows& rows);
  /// Fewer bytes are on their way than the limit, and no meeting is pending. Call it before `push` and `restore`.
  [[nodiscard]] bool has_room() const;
  /// The servers have acknowledged all pushes.
  [[nodiscard]] bool is_acknowledged() const;
  /// Requests the rows of these ids. `ids` and `rows`, which `receive` writes, must live until `has_pulled` or
  /// `abandon`. A server has a limited number of requests at a time, so that it holds few answers: `receive` sends the
  /// next ones. Throws Misuse as `push`.
  void pull(std::size_t table, std::span<const std::uint64_t> ids, std::span<float> rows);
  [[nodiscard]] bool has_pulled() const;
  void abandon();  ///< of pulls and visits: late answers are ignored

  /// The worker begins with this number of steps, and its visits come after this meeting (RowMarks).
  void begin(Clock steps, Clock meeting);
  /// The worker has completed this number of steps, or missed them: marks the steps of which servers write snapshots.
  void end_steps(Clock steps);
  /// Begins a visit of the table after this number of steps, or ends it: points at which all workers meet. The servers
  /// then have all their pushes to the table before it. Throws Misuse for a table that does not exist.
  void begin_visit(std::size_t table, Clock steps);
  void end_visit(std::size_t table);
  [[nodiscard]] bool has_met() const;

  struct Visited {
    std::size_t slabs = 0;  ///< of the table on the server
    KeptRows rows{};
  };
  /// Requests a slab of the table.
  void visit(std::size_t server, std::size_t table, std::size_t slab);
  [[nodiscard]] bool has_visited() const;
  [[nodiscard]] Visited take_visited();

  /// They throw Corrupt for an invalid message.
  void receive(std::size_t server, const Welcome& welcome);
  void receive(std::size_t server, const PushedRows& pushed);
  void receive(std::size_t server, const PulledRows& pulled);
  void receive(std::size_t server, const VisitedRows& message);
  /// On another stream to `server`: sends what it has not answered.
  void repeat(std::size_t server);
  [[nodiscard]] const RowRules& rules(std::size_t table) const;  ///< throws Misuse

 private:
  struct Pulled {
    PullRows message{};
    std::span<const std::uint32_t> places{};  ///< in the call, of the first occurrence of each id
  };
  struct Pushed {
    std::uint64_t turn = 0;  ///< in the order in which pushes to the server are sent
    RowPush message{};
  };
  struct Peer {
    std::vector<std::uint64_t> pushes;  ///< sent so far, by table
    std::uint64_t turns = 0;            ///< pushes sent so far
    /// By table and number, so that an acknowledgement finds the pushes that it ends.
    std::map<std::pair<std::uint32_t, std::uint64_t>, Pushed> unacknowledged;
    std::map<std::uint64_t, Pulled> pulled;        ///< unanswered, by their numbers
    PullRows next_pull{};                          ///< without its number and ids
    std::span<const std::uint32_t> unrequested{};  ///< places of the current pull whose requests are to come
    std::optional<VisitRows> visit{};              ///< unanswered
    Clock snapshot_every = 0, marked = 0;          ///< steps; 0: the server writes no snapshots
  };
  [[nodiscard]] const RowRules& require_fit(std::size_t table, std::size_t ids, std::size_t floats) const;
  void send_push(std::size_t server, RowPush push);
  void number_and_send(std::size_t server, RowPush push) SYNCOPATE_REQUIRES(mutex_);
  void mark(std::size_t server, MarkRows mark) SYNCOPATE_REQUIRES(mutex_);
  void mark_visit(std::size_t table) SYNCOPATE_REQUIRES(mutex_);
  void require_table(std::size_t server, std::uint32_t table) const;
  bool request_rows(std::size_t server) SYNCOPATE_REQUIRES(mutex_);

  const std::vector<RowRules> rules_;
  const Send send_;
  const std::size_t servers_;
  const bool waits_;
  const bool lockstep_;    ///< of the workers, by weights: all visit after the same number of steps
  RowSplit pushed_split_;  ///< of the program's thread
  mutable base::Mutex mutex_;
  std::vector<Peer> peers_ SYNCOPATE_GUARDED_BY(mutex_);  ///< by server
  std::size_t travelling_bytes_ SYNCOPATE_GUARDED_BY(mutex_) = 0;
  std::size_t unanswered_ SYNCOPATE_GUARDED_BY(mutex_) = 0;  ///< rows of the current pull
  std::size_t meetings_ SYNCOPATE_GUARDED_BY(mutex_) = 0;    ///< unacknowledged marks of meetings
  Clock meeting_ SYNCOPATE_GUARDED_BY(mutex_) = 0;           ///< the last begin or end of a visit (RowMarks)
  std::optional<Visited> visited_ SYNCOPATE_GUARDED_BY(mutex_);
  std::uint64_t pulls_ SYNCOPATE_GUARDED_BY(mutex_) = 0;
  RowSplit split_ SYNCOPATE_GUARDED_BY(mutex_);        ///< of the current pull
  std::span<float> out_ SYNCOPATE_GUARDED_BY(mutex_);  ///< of the current pull
};

}  // namespace syncopate::server
