// WorkerSlots: a server's workers: the stream of each, which are away and since when, and which have ended.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "server/replication/log.hpp"
#include "server/streams/stream.hpp"
#include "syncopate/server.hpp"

namespace syncopate::server {

/// Thread-safe. Workers that never came count as away since `begin`.
class WorkerSlots final {
 public:
  explicit WorkerSlots(std::chrono::milliseconds patience,
                       std::shared_ptr<const base::Clock> clock = std::make_shared<base::SteadyClock>())
      : patience_(patience), clock_(std::move(clock)) {}

  /// Makes `stream` the worker's, if it is away or `process` has its stream already, which is cut off. Returns the
  /// stream's number. Empty: another process has the worker's stream.
  [[nodiscard]] std::optional<std::uint64_t> occupy(std::size_t worker, std::shared_ptr<streams::Stream> stream,
                                                    std::uint64_t process);
  /// Counts streams of that worker that have not taken its slot yet. A worker that never had its slot is not given up
  /// while there are any. Otherwise the patience restarts with the first one since the worker is away, and not with
  /// later ones: the process that replaces the worker may never take the slot.
  void expect(std::size_t worker, int change);
  /// A message has arrived. False if it came late, on an earlier stream. Before `open` the message is
  /// kept instead; a worker sends only one before it is answered.
  [[nodiscard]] bool admit(std::size_t worker, std::uint64_t life, WorkerMessage& message);
  /// Serves workers from now on. Returns the kept messages.
  [[nodiscard]] std::vector<std::pair<std::size_t, WorkerMessage>> open();
  /// Sends on the worker's current stream; dropped if there is none.
  void send(Outgoing outgoing);
  [[nodiscard]] std::uint64_t life_of(std::size_t worker) const;
  /// The worker does not fit the job: sends it the refusal and closes its stream; later messages on it count as late.
  void turn_away(std::size_t worker, std::uint64_t life, const Refuse& refusal);
  /// The job has failed: as `turn_away` for every worker that has a stream.
  void turn_all_away(const Refuse& refusal);
  void mark_finished(std::size_t worker);
  /// Gives up a worker that is away: the others no longer wait for it.
  void give_up(std::size_t worker);
  /// Its stream has ended. False if that was an earlier stream, or the worker had finished.
  [[nodiscard]] bool lose(std::size_t worker, std::uint64_t life);
  /// A stream to end in the next call of `due`.
  void retire(std::shared_ptr<streams::Stream> stream);

  struct Due {
    std::vector<std::size_t> given_up{};  ///< workers, since now
    base::Time next = base::kNever;       ///< of the next one, if nothing happens before
  };
  /// Ends streams, which callbacks must not do. `workers`: of the job; 0: it has not begun.
  [[nodiscard]] Due due(std::size_t workers);
  /// This process cannot continue: `wait_for_end` throws it.
  void fail(std::exception_ptr failure);
  /// Waits until every worker has finished or was given up. Returns whether they have. `workers` is called with the
  /// lock held.
  [[nodiscard]] bool wait_for_end(std::chrono::milliseconds time, const std::function<std::size_t()>& workers);
  void count(ServerStatus& status) const;

 private:
  struct WorkerSlot {
    std::shared_ptr<streams::Stream> stream{};  ///< the current one; null: the worker is away
    std::uint64_t life = 0;                     ///< counts streams
    std::uint64_t process = 0;                  ///< of `stream`, as claimed; 0: unknown
    int expected = 0;                           ///< streams that have not taken the slot
    base::Time away_since{};
    bool is_given_up = false, has_finished = false;
    bool was_extended = false;             ///< its patience, since `away_since`
    std::optional<WorkerMessage> first{};  ///< arrived before `open`
  };
  void turn_away(WorkerSlot& slot, const Refuse& refusal) SYNCOPATE_REQUIRES(mutex_);
  [[nodiscard]] Due overdue(std::size_t workers) SYNCOPATE_REQUIRES(mutex_);
  [[nodiscard]] bool have_all_ended(std::size_t workers) const SYNCOPATE_REQUIRES(mutex_);

  const std::chrono::milliseconds patience_;
  const std::shared_ptr<const base::Clock> clock_;
  mutable base::Mutex mutex_;
  base::Condition changed_;
  std::map<std::size_t, WorkerSlot> slots_ SYNCOPATE_GUARDED_BY(mutex_);  ///< by worker
  std::vector<std::shared_ptr<streams::Stream>> retired_ SYNCOPATE_GUARDED_BY(mutex_);
  std::optional<base::Time> began_ SYNCOPATE_GUARDED_BY(mutex_);
  bool is_open_ SYNCOPATE_GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ SYNCOPATE_GUARDED_BY(mutex_);
  std::uint64_t received_bytes_ SYNCOPATE_GUARDED_BY(mutex_) = 0, sent_bytes_ SYNCOPATE_GUARDED_BY(mutex_) = 0;
};

}  // namespace syncopate::server
