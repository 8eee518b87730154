// Acceptor: where connections come in and go out, with all handshakes under way; strangers are cut off and logged.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "syncopate/log.hpp"
#include "transport/connect/handshake.hpp"
#include "transport/socket/poller.hpp"

namespace syncopate::transport::connect {

struct AcceptorOptions {
  int rank = 0;
  std::uint64_t group = 0;
  std::string secret;
  base::Duration patience = std::chrono::seconds(10);  ///< bound of one handshake
  std::size_t most_waiting = 1024;                     ///< handshakes under way; beyond, newcomers are turned away
  Log log;
};

/// A connection whose other end has proven the secret.
struct Connection {
  socket::Channel channel;
  Hello hello;          ///< the other end's
  bool called = false;  ///< this rank connected
};

/// A call of this rank's that came to nothing.
struct Refusal {
  Hello mine;
  Handshake::Cause cause = Handshake::Cause::none;
  std::string reason;  ///< names the address
};

/// Used by one thread, with a poller that it shares: keys from `kFirstKey` on are the door's. Over a unix socket only
/// this process's user may pass.
class Acceptor final {
 public:
  static constexpr std::uint64_t kFirstKey = std::uint64_t{1} << 40;
  static constexpr std::uint64_t kMostListeners = 8;

  Acceptor(socket::Poller& poller, AcceptorOptions options) : poller_(poller), options_(std::move(options)) {}
  /// Lets others in; `listener` must be listening. May be called for several.
  void open(socket::Descriptor listener);
  /// Calls `mine.to` at `to`; ends as a connection or a refusal.
  void call(const socket::Address& to, const socket::Address& from, const Hello& mine);
  void on_ready(const socket::Ready& ready);
  /// Cuts off those whose time is over. To be called at `next_deadline` at the latest.
  void expire(base::Time now);
  [[nodiscard]] base::Time next_deadline() const noexcept;
  [[nodiscard]] std::vector<Connection> connections() { return std::exchange(connections_, {}); }
  [[nodiscard]] std::vector<Refusal> refusals() { return std::exchange(refusals_, {}); }

 private:
  struct Pending {
    Handshake handshake;
    bool called = false;
    std::string address;
    base::Time deadline;
    std::uint32_t watched = 0;
  };
  using PendingMap = std::map<std::uint64_t, Pending>;

  void accept_all(const socket::Descriptor& listener);
  void watch_listeners(std::uint32_t events);
  void begin(Handshake handshake, bool called, std::string address);
  void advance(PendingMap::iterator pending);
  void finish(PendingMap::iterator pending);
  void refuse(const Pending& pending, Handshake::Cause cause, const std::string& reason);

  socket::Poller& poller_;
  AcceptorOptions options_;
  std::vector<socket::Descriptor> listeners_;
  base::Time paused_until_ = base::kNever;  ///< the listeners rest after the system ran out of descriptors
  std::uint64_t next_key_ = kFirstKey + kMostListeners;
  PendingMap pending_;
  std::vector<Connection> connections_;
  std::vector<Refusal> refusals_;
};

}  // namespace syncopate::transport::connect
