// Log: the records that a server has sent to its replica, and the answers that wait until the replica has them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>

#include "base/mutex.hpp"
#include "server/replication/record.hpp"

namespace syncopate::server {

/// A server's message to one worker; lower priorities first: the tables of the front layers.
struct Outgoing {
  std::size_t worker = 0;
  std::uint64_t priority = 0;
  ServerMessage message{};
};

/// Law: a message to a worker is sent when the replica has every record that was made before it. Without a replica
/// there are no records, and every message is sent at once. Thread-safe; `send` and `forward` are called with a lock
/// held, in the order of the sequence, and must not block nor call the log.
class Log final {
 public:
  using Send = std::function<void(Outgoing)>;
  using Forward = std::function<void(const Record&)>;

  /// `forward` null: no replica.
  Log(Send send, Forward forward) : send_(std::move(send)), forward_(std::move(forward)) {}

  /// Called with the lock of the record's block, so that a block's records have the order of its changes. Forwards the
  /// record if the replica follows.
  void append(Record record);
  void send(Outgoing outgoing);
  /// The worker is on another stream: answers that wait belong to the previous one, and are requested again.
  void forget(std::size_t worker);
  /// The replica has all records up to `sequence`.
  void acknowledge(std::uint64_t sequence);
  /// The replica is out of reach: nothing is forwarded until `resume`.
  void pause();
  /// The replica is reachable on another stream; it has all records up to `sequence`, and follows from there. Returns
  /// false if the log no longer holds the records that it lacks: everything must be transferred, and it follows from
  /// the transfer's first record.
  [[nodiscard]] bool resume(std::uint64_t sequence);

  /// Whether the replica is reachable, but has no state to follow from.
  [[nodiscard]] bool awaits_transfer() const;
  [[nodiscard]] std::uint64_t sequence() const;
  /// For the log of a replica, or of a server that replaces another: continues the sequence after this record.
  void continue_from(std::uint64_t sequence);

 private:
  enum class Reach : std::uint8_t { away, waiting, following };
  struct Held {
    std::uint64_t needs = 0;
    Outgoing outgoing{};
  };
  void release(std::uint64_t sequence) SYNCOPATE_REQUIRES(mutex_);

  const Send send_;
  const Forward forward_;
  mutable base::Mutex mutex_;
  Reach replica_ SYNCOPATE_GUARDED_BY(mutex_) = Reach::away;
  std::uint64_t made_ SYNCOPATE_GUARDED_BY(mutex_) = 0, acknowledged_ SYNCOPATE_GUARDED_BY(mutex_) = 0;
  std::deque<Record> kept_ SYNCOPATE_GUARDED_BY(mutex_);  ///< not acknowledged; without images, which are made again
  std::deque<Held> held_ SYNCOPATE_GUARDED_BY(mutex_);
};

}  // namespace syncopate::server
