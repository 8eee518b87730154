// Links: a worker's streams to all servers, which are dialled again when they break.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "server/message.hpp"
#include "server/process/access.hpp"
#include "server/streams/streams.hpp"
#include "server/table/worker_tables.hpp"

namespace syncopate::server {

/// Thread-safe. A failure from which no other stream can recover (a server refuses, or is out of reach for the timeout)
/// is kept, and every later call that waits or requires throws it.
class Links final {
 public:
  using Take = std::function<void(std::size_t server, Message message)>;
  /// Dials every server, one after the other. `take` receives the servers' messages, from each stream's welcome on, on
  /// the thread that runs the streams. Throws as `Streams::dial`.
  Links(const WorkerOptions& options, Take take);
  ~Links();
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  /// Sends the setup to every server, and waits until all have accepted it. Returns where this worker begins: at step
  /// 0, or later if it comes late. Throws Mismatch (also if a server was restarted without the others), Misuse,
  /// Timeout, PeerLost.
  [[nodiscard]] Entry introduce(const Setup& setup);
  /// Calls `begin`, which sends the first requests. From then on, `renewed` is called when a broken stream has been
  /// replaced, on the thread that runs the streams, but not while `begin` runs: so of the requests of `begin` to a
  /// server, those that are lost are the last ones.
  void open(const std::function<void()>& begin, std::function<void(std::size_t server)> renewed);
  /// Sends, or drops if the stream is broken: unanswered requests are sent again when it is renewed.
  void send(Request request);
  /// Announces to every server that this worker has finished.
  void leave();

  [[nodiscard]] std::uint64_t arrivals() const;
  /// Waits until the number of arrivals exceeds `seen`; returns it. At the deadline throws Timeout naming the awaited
  /// table and the servers out of reach. Throws the failure, if there is one.
  std::uint64_t wait_beyond(std::uint64_t seen, base::Time deadline, std::string_view for_what);
  void require_whole() const;  ///< throws the failure, if there is one
  /// The newest step of any worker, as servers reported it when streams began.
  [[nodiscard]] Clock newest() const;
  [[nodiscard]] WorkerStatistics statistics() const;

 private:
  struct Link {
    std::shared_ptr<streams::Stream> stream{};  ///< null: out of reach
    std::uint64_t life = 0;                     ///< counts streams
    bool is_welcome = false;                    ///< the server has answered on this stream
    std::optional<Message> welcome{};
  };

  void dial(std::size_t server, std::chrono::milliseconds patience);
  [[nodiscard]] bool redial(std::size_t server, base::Duration lost);
  void greet(std::size_t server);
  void finish(std::size_t server);
  [[nodiscard]] Entry greet_all(Entry entry);
  void receive(std::size_t server, std::uint64_t life, Payload bytes);
  [[nodiscard]] bool renew(std::size_t server, std::uint64_t life, const Message& welcome);
  void lose(std::size_t server, std::uint64_t life, const streams::Ending& ending);
  void keep(const std::stop_token& stop);
  void fail(std::exception_ptr failure);
  [[nodiscard]] std::string where(std::size_t server) const;
  [[nodiscard]] std::size_t servers() const noexcept { return options_.servers.size(); }
  [[nodiscard]] bool is_answered() const SYNCOPATE_REQUIRES(mutex_);
  void identify_servers() SYNCOPATE_REQUIRES(mutex_);
  /// Waits for a failure, or what `is_here` finds with `mutex_` held. Calls WorkerOptions::while_waiting.
  void wait_for(base::Time deadline, const std::function<bool()>& is_here);

  const WorkerOptions options_;
  const Take take_;
  const base::SteadyClock clock_;
  const std::uint64_t process_;  ///< random; identifies this process
  base::Mutex renewing_;         ///< held while requests are sent that follow each other; taken before `mutex_`
  mutable base::Mutex mutex_;
  base::Condition lost_;                                  ///< the keeper waits for streams that have ended
  std::vector<Link> links_ SYNCOPATE_GUARDED_BY(mutex_);  ///< one per server
  std::vector<std::shared_ptr<streams::Stream>> retired_ SYNCOPATE_GUARDED_BY(mutex_);
  std::function<void(std::size_t)> renewed_ SYNCOPATE_GUARDED_BY(mutex_);
  std::string setup_ SYNCOPATE_GUARDED_BY(mutex_);          ///< as bytes; empty before `introduce`
  Entry entry_ SYNCOPATE_GUARDED_BY(mutex_);                ///< as far as the servers have it
  std::uint32_t origins_ SYNCOPATE_GUARDED_BY(mutex_) = 0;  ///< identifies all servers' tables together; 0: not known
  std::uint64_t arrivals_ SYNCOPATE_GUARDED_BY(mutex_) = 0;
  Clock newest_ SYNCOPATE_GUARDED_BY(mutex_) = 0;
  bool has_left_ SYNCOPATE_GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ SYNCOPATE_GUARDED_BY(mutex_);
  WorkerStatistics statistics_ SYNCOPATE_GUARDED_BY(mutex_);
  streams::Streams streams_;
  std::jthread keeper_;
};

}  // namespace syncopate::server
