// WorkerShell: a worker's streams to all servers: dials, introduces the worker, sends requests, and repeats them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "server/message.hpp"
#include "server/streams/loop.hpp"
#include "server/table/worker_tables.hpp"

namespace syncopate::server {

/// Has no threads, no sockets and no clock of its own, so that tests run it in virtual time. Thread-safe: streams call
/// it on their thread, one other thread calls `turn`, and the program's thread the rest.
///
/// A failure from which no other stream can recover (a server refuses, or is out of reach for the timeout) is kept, and
/// `require_whole` throws it.
class WorkerShell final {
 public:
  struct Options {
    std::size_t worker = 0;
    std::vector<std::string> servers{};   ///< their addresses, for texts
    std::chrono::milliseconds timeout{};  ///< a server that is out of reach for longer is lost
    std::uint64_t process = 0;            ///< identifies this process; not 0
    syncopate::Log log{};
  };
  /// Begins one attempt to connect to a server. Called outside callbacks of streams.
  using Dialler = std::function<void(std::size_t server, streams::DialEvents events)>;
  /// `ask`: called on any thread when `turn` has something to do; it must not block or call this.
  WorkerShell(Options options, Dialler dial, std::function<void()> ask, std::shared_ptr<const base::Clock> clock);

  /// Call it first, and after `ask`, outside callbacks of streams: dials the servers that are out of reach.
  void turn();
  /// This process ends: ends its streams. `turn` is not called afterwards.
  void end();

  /// Every server has been reached, and none was lost since.
  [[nodiscard]] bool is_connected() const;
  /// Called once: makes the tables and sends the setup to all servers. `weights`: of every table of the setup, in the
  /// program's memory; they must outlive this. Throws Misuse.
  void introduce(const Setup& setup, std::vector<Buffer> weights, KeptTables earlier);
  /// All servers have accepted the setup, so `begin` may be called.
  [[nodiscard]] bool is_admitted() const;
  /// Sends the first requests, and the first weights if this worker has them. From now on, requests that a broken
  /// stream has lost are repeated on the next one.
  void begin();
  /// Announces to every server that this worker has finished.
  void leave();

  /// After `introduce`.
  [[nodiscard]] WorkerTables& tables() const noexcept { return *tables_; }
  [[nodiscard]] bool has_tables() const noexcept { return tables_ != nullptr; }
  /// Counts what servers have sent. A program that waits for the tables looks at them again when it has changed.
  [[nodiscard]] std::uint64_t arrivals() const;
  [[nodiscard]] bool is_whole() const;  ///< there is no failure
  void require_whole() const;           ///< throws the failure, if there is one
  /// "server 0 at host:7000, server 2 at host:7002": those that are out of reach.
  [[nodiscard]] std::string out_of_reach() const;
  /// The newest step of any worker, as servers reported it when streams began.
  [[nodiscard]] Clock newest() const;
  [[nodiscard]] WorkerStatistics statistics() const;

 private:
  struct Link {
    enum class Phase : std::uint8_t {
      away,        ///< until the next turn
      dialling,    ///< one of the dial's events comes
      reached,     ///< until `introduce`
      introduced,  ///< the server has not answered the setup
      open
    };
    Phase phase = Phase::away;
    base::Time lost{};                          ///< since when it is out of reach
    std::shared_ptr<streams::Stream> stream{};  ///< null: it is out of reach
    std::optional<Welcome> welcome{};           ///< the answer to the last setup
  };

  /// A setup to be sent without `mutex_`: a send takes the lock under which a waiting caller asks this class.
  struct HelloToSend {
    std::shared_ptr<streams::Stream> stream{};
    Hello hello{};
    void send() { server::send(*stream, 0, WorkerMessage(std::move(hello))); }
  };

  [[nodiscard]] streams::StreamEvents reach(std::size_t server, std::shared_ptr<streams::Stream> stream);
  void miss(std::size_t server, const std::exception_ptr& why);
  void receive(std::size_t server, Payload bytes);
  void welcome(std::size_t server, const Welcome& welcome);
  void lose(std::size_t server, const streams::Ending& ending);
  void send(Request request);
  void finish(std::size_t server);
  void fail(std::exception_ptr failure);
  [[nodiscard]] HelloToSend hello_to(Link& link) const SYNCOPATE_REQUIRES(mutex_);
  [[nodiscard]] std::vector<HelloToSend> hellos_to_all() SYNCOPATE_REQUIRES(mutex_);
  [[nodiscard]] std::vector<HelloToSend> consider_welcomes() SYNCOPATE_REQUIRES(mutex_);
  [[nodiscard]] bool identify_servers() SYNCOPATE_REQUIRES(mutex_);
  [[nodiscard]] std::string where(std::size_t server) const;

  const Options options_;
  const Dialler dial_;
  const std::function<void()> ask_;
  const std::shared_ptr<const base::Clock> clock_;
  std::unique_ptr<WorkerTables> tables_;  ///< null before `introduce`
  base::Mutex renewing_;  ///< held while requests are sent that follow each other; taken before `mutex_`
  mutable base::Mutex mutex_;
  std::vector<Link> links_ SYNCOPATE_GUARDED_BY(mutex_);    ///< one per server
  std::string setup_ SYNCOPATE_GUARDED_BY(mutex_);          ///< as bytes; empty before `introduce`
  Clock first_step_ SYNCOPATE_GUARDED_BY(mutex_) = 0;       ///< of the setup
  Entry entry_ SYNCOPATE_GUARDED_BY(mutex_);                ///< as the last setups had it; as servers had corrected it
  std::uint32_t origins_ SYNCOPATE_GUARDED_BY(mutex_) = 0;  ///< identifies all servers' tables together; 0: not known
  std::uint32_t told_origins_ SYNCOPATE_GUARDED_BY(mutex_) = 0;  ///< in the setups that were sent to all servers
  bool is_admitted_ SYNCOPATE_GUARDED_BY(mutex_) = false,
                    has_begun_ SYNCOPATE_GUARDED_BY(mutex_) = false, has_left_ SYNCOPATE_GUARDED_BY(mutex_) = false;
  std::uint64_t arrivals_ SYNCOPATE_GUARDED_BY(mutex_) = 0;
  Clock newest_ SYNCOPATE_GUARDED_BY(mutex_) = 0;
  std::exception_ptr failure_ SYNCOPATE_GUARDED_BY(mutex_);
  WorkerStatistics statistics_ SYNCOPATE_GUARDED_BY(mutex_);
};

}  // namespace syncopate::server
