// Streams: all streams of a process to or from parameter servers: their thread, and callers that wait.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/fork.hpp"
#include "server/streams/loop_leader.hpp"

namespace syncopate::server::streams {

/// Thread-safe.
class Streams final {
 public:
  /// Listens at `addresses` (numeric hosts, or @names on this host), if there are any, and starts the thread. Throws
  /// Misuse for an address or options that are not allowed (off loopback without a secret), SystemFailure for an
  /// address that cannot be bound.
  explicit Streams(const EndOptions& options, const std::vector<std::string>& addresses = {}, Accepted accepted = {});
  /// Cuts off its streams; closed ones first send their queues, for EndOptions::silence at most. Returns when no
  /// callback runs or will come. `Stream` objects may live longer. Must not be called in a callback. Does nothing in a
  /// forked child.
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  /// The addresses at which it listens, with the ports that the system chose for port 0.
  [[nodiscard]] const std::vector<std::string>& addresses() const noexcept { return addresses_; }

  struct Target {
    std::string address;  ///< "10.0.0.5:7000", "[::1]:7000", "host:7000", "@name" on the same host
    std::int32_t server = transport::connect::kAnyone;   ///< the index that the server must have
    base::Duration patience = std::chrono::seconds(10);  ///< attempts are repeated for this long
  };
  /// Connects to a server; retries until it answers or the patience is over. Blocks; must not be called in a callback.
  /// Throws Misuse for an address that is not allowed, PeerLost if no server answers in time, Unauthorized if one of
  /// the two ends does not prove the secret, Mismatch for another version, job or server.
  [[nodiscard]] std::unique_ptr<Stream> dial(const Target& target, StreamEvents events);
  /// As above, but returns when it has looked up the address; errors are those of `events.failed`, also that of an
  /// address, which it calls on this thread.
  void dial(const Target& target, DialEvents events);

  /// Waits until `is_over` or the deadline; meanwhile callbacks of streams may run on this thread. Returns `is_over()`.
  /// It is asked after callbacks and after `wake`, under a lock: it must not throw or call a stream. Must not be called
  /// in a callback. Throws Misuse in a forked child.
  bool wait(base::Time deadline, const std::function<bool()>& is_over) {
    process_.require("the streams of a process");
    return leader_->wait(deadline, is_over);
  }
  /// Call it when the result of `is_over` has changed outside a callback.
  void wake() { leader_->wake(); }

 private:
  void run(const std::stop_token& stop);
  void begin(const Target& target, DialEvents events);

  std::unique_ptr<LoopLeader> leader_;
  const base::Duration silence_;
  std::vector<std::string> addresses_;
  base::OwnProcess process_;
  std::unique_ptr<std::jthread> thread_;
};

}  // namespace syncopate::server::streams
