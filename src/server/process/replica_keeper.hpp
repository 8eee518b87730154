// ReplicaKeeper: one server's replica on another server: repeats its records, and hands its state to a successor.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "server/streams/stream.hpp"
#include "server/table/server_tables.hpp"
#include "syncopate/server.hpp"

namespace syncopate::server {

/// Thread-safe. Laws: a process without tables that claims to be the server becomes its owner and receives the
/// replica's state, but while the stream of the previous owner lasts it waits, and is refused after a bound. A process
/// with tables that claims the server afterwards has been replaced, and is refused. Two processes therefore never both
/// acknowledge updates of one server.
class ReplicaKeeper final {
 public:
  /// Keeps the replica of server `server`. `bound`: longer than a stream takes to end after its other end falls silent.
  /// `due`: called on the streams' thread when `turn` has something to do.
  ReplicaKeeper(std::size_t server, std::size_t memory_bytes, base::Duration bound, syncopate::Log log,
                std::function<void()> due, const Catalogue& catalogue = {},
                std::shared_ptr<const base::Clock> clock = std::make_shared<base::SteadyClock>());

  /// Takes a further stream of the server, or of a process that claims to be it. Its claim decides whether it replaces
  /// the current one.
  [[nodiscard]] streams::StreamEvents accept(std::unique_ptr<streams::Stream> stream);
  /// Admits or refuses who waits, hands over, and ends streams that are closed, which callbacks must not do. Returns
  /// the time of the next call. Throws SystemFailure, with the server and the cause, if the tables cannot be handed
  /// over: the process that claims the server then has a part of them and never serves, so the job is to end.
  [[nodiscard]] base::Time turn();
  /// This process ends: ends the streams in order.
  void end();
  void count(ServerStatus& status) const;

 private:
  /// A stream that is not the server's yet, or never will be.
  struct Claimant {
    std::shared_ptr<streams::Stream> stream{};
    std::uint64_t process = 0;  ///< 0: it has not claimed
    bool is_empty = false;      ///< it has no tables
    bool is_waiting = false;    ///< for the end of the current stream, until `deadline`
    base::Time deadline{};
  };
  void receive(std::uint64_t life, Payload bytes);
  void receive_claim(std::uint64_t life, Claimant& claimant, const RelayMessage& message) SYNCOPATE_REQUIRES(mutex_);
  void admit(std::uint64_t life, Claimant claimant) SYNCOPATE_REQUIRES(mutex_);
  void refuse(Claimant& claimant, const Denied& why) SYNCOPATE_REQUIRES(mutex_);
  [[nodiscard]] base::Time consider_waiting() SYNCOPATE_REQUIRES(mutex_);
  void receive_record(RelayMessage message) SYNCOPATE_REQUIRES(mutex_);
  void tell_kept() const SYNCOPATE_REQUIRES(mutex_);
  void hand_over();
  void forget() SYNCOPATE_REQUIRES(mutex_);
  void lose(std::uint64_t life, const streams::Ending& ending);

  const std::size_t server_, memory_bytes_;
  const base::Duration bound_;
  const syncopate::Log log_;
  const std::function<void()> due_;
  const Catalogue catalogue_;
  const std::shared_ptr<const base::Clock> clock_;
  mutable base::Mutex mutex_;
  std::shared_ptr<ServerTables> tables_ SYNCOPATE_GUARDED_BY(mutex_);
  std::uint64_t has_ SYNCOPATE_GUARDED_BY(mutex_) = 0;    ///< the last return value of `apply`
  std::uint64_t owner_ SYNCOPATE_GUARDED_BY(mutex_) = 0;  ///< the process that is the server; 0: none yet
  bool is_blank_ SYNCOPATE_GUARDED_BY(mutex_) =
      false;  ///< the owner came without tables, and has acknowledged nothing since
  std::shared_ptr<streams::Stream> stream_ SYNCOPATE_GUARDED_BY(mutex_);      ///< the owner's; null: it is away
  std::uint64_t life_ SYNCOPATE_GUARDED_BY(mutex_) = 0;                       ///< of `stream_`
  std::uint64_t lives_ SYNCOPATE_GUARDED_BY(mutex_) = 0;                      ///< counts streams
  std::map<std::uint64_t, Claimant> claimants_ SYNCOPATE_GUARDED_BY(mutex_);  ///< by the number of their stream
  bool is_due_ SYNCOPATE_GUARDED_BY(mutex_) = false;                          ///< `stream_` lacks the replica's state
  RecordReader reader_ SYNCOPATE_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<streams::Stream>> retired_ SYNCOPATE_GUARDED_BY(mutex_);
};

}  // namespace syncopate::server
