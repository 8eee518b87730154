// Acceptor: accepts and makes connections, with all handshakes in progress; strangers are cut off and logged.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "syncopate/group.hpp"
#include "syncopate/log.hpp"
#include "transport/connect/handshake.hpp"
#include "transport/socket/poller.hpp"

namespace syncopate::transport::connect {

/// A lack of descriptors that is over sooner disturbs no group.
inline constexpr auto kPatienceWithout = std::chrono::seconds(1);

struct AcceptorOptions {
  int rank = 0;
  std::uint64_t group = 0;
  std::string secret;
  Digest meeting{};  ///< digest of all texts of the rendezvous; zeros before it
  /// Encrypts connections, except those over unix sockets; automatic: those to public addresses.
  TlsChoice tls = TlsChoice::off;
  base::Duration patience = std::chrono::seconds(10);          ///< limit of a call, with all its attempts
  base::Duration stranger_patience = std::chrono::seconds(2);  ///< limit of a handshake that another rank began
  std::size_t most_waiting = 256;                              ///< limit of such handshakes, besides descriptors / 4
  Log log;
};

/// A connection whose other end has proven the secret.
struct Connection {
  socket::Channel channel;
  Hello hello;          ///< of the other end
  bool called = false;  ///< this rank connected
};

/// A call that failed.
struct Refusal {
  Hello mine;
  Handshake::Cause cause = Handshake::Cause::none;
  std::string reason;  ///< names the address
  int caller = -1;     ///< a rank with the right secret and other settings; -1: this rank called
};

/// An end that has not proved the secret holds few descriptors, for a short time. Above the limit the oldest handshake
/// is cut off, not the newest, and a caller repeats a call that was cut off in its handshake: strangers cannot keep a
/// rank out. Used by one thread, with a shared poller: keys from `kFirstKey` on are the acceptor's. Over a unix socket
/// only this process's user is accepted.
class Acceptor final {
 public:
  static constexpr std::uint64_t kFirstKey = std::uint64_t{1} << 40;
  static constexpr std::uint64_t kMostListeners = 8;

  Acceptor(socket::Poller& poller, AcceptorOptions options);
  /// Accepts connections at `listener`, which must be listening. May be called for several listeners.
  void open(socket::Descriptor listener);
  /// Closes the listener that was opened as number `listener`, from 0 on, if there is one.
  void close(std::size_t listener);
  /// Calls `mine.to` at `to`, and repeats the call when it is cut off. Ends as a connection or a refusal.
  void call(const socket::Address& to, const socket::Address& from, const Hello& mine) {
    call(to, from, mine, now() + options_.patience);
  }
  void call(const socket::Address& to, const socket::Address& from, const Hello& mine, base::Time deadline);
  void on_ready(const socket::Ready& ready);
  /// Cuts off handshakes whose time is over. Call it at `next_deadline` at the latest, and after the results were
  /// taken.
  void expire(base::Time now);
  [[nodiscard]] base::Time next_deadline() const noexcept;
  /// Whether handshakes or calls are in progress.
  [[nodiscard]] bool busy() const noexcept {
    return !pending_.empty() || !repeats_.empty() || !connections_.empty() || !refusals_.empty();
  }
  /// Why waiting callers could not be accepted for kPatienceWithout, although the acceptor tries it again and again;
  /// empty: they can. The log has it once until a caller is accepted.
  [[nodiscard]] std::string exhaustion() const;
  [[nodiscard]] std::vector<Connection> connections() { return std::exchange(connections_, {}); }
  [[nodiscard]] std::vector<Refusal> refusals() { return std::exchange(refusals_, {}); }

 private:
  struct Call {
    socket::Address to, from;
    Hello mine;
    base::Time deadline, next;
  };
  struct Pending {
    Handshake handshake;
    std::optional<Call> call;  ///< empty: another rank began it
    std::string address;
    base::Time deadline;
    std::uint32_t watched = 0;
  };
  using PendingMap = std::map<std::uint64_t, Pending>;

  [[nodiscard]] base::Time now() const noexcept { return poller_.system().now(); }
  void accept_all(const socket::Descriptor& listener);
  void watch_listeners(std::uint32_t events);
  void attempt(Call call);
  void begin(Pending pending);
  void make_room();
  void advance(PendingMap::iterator pending);
  void finish(PendingMap::iterator pending);
  [[nodiscard]] Pending take(PendingMap::iterator pending);
  void refuse(const Pending& pending, Handshake::Cause cause, const std::string& reason);
  [[nodiscard]] bool encrypts(const socket::Address& answerer) const noexcept;

  socket::Poller& poller_;
  AcceptorOptions options_;
  std::vector<socket::Descriptor> listeners_;
  base::Time paused_until_ = base::kNever;  ///< the listeners pause after the system ran out of descriptors
  std::string exhaustion_;                  ///< why the last caller was not accepted; empty: it was
  base::Time exhausted_since_{}, last_exhausted_{};
  std::uint64_t next_key_ = kFirstKey + kMostListeners;
  PendingMap pending_;
  std::vector<Call> repeats_;  ///< calls that were cut off
  std::size_t accepted_ = 0;   ///< handshakes in `pending_` that other ranks began
  std::vector<Connection> connections_;
  std::vector<Refusal> refusals_;
};

}  // namespace syncopate::transport::connect
