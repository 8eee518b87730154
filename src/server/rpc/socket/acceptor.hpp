// Acceptor: owns the listening sockets, and hands connections to gRPC after their first byte.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "server/rpc/socket/sockets.hpp"
#include "syncopate/log.hpp"

namespace syncopate::server::rpc {

/// Limits the descriptors that callers without proof of the secret hold, and for how long. gRPC's own listener has no
/// such limit, and gRPC 1.51 never accepts again after the process was out of descriptors.
///
/// A connection is a guest until `admit`: first it waits in the acceptor until it has sent a byte, then gRPC serves it
/// and the acceptor keeps a duplicate of its descriptor, to detect the connection's end and to shut it down. Both kinds
/// are limited. Above the limit the oldest guest is closed, not the newest; after `patience` every guest is closed.
/// Over a unix socket only this process's user is accepted, and such a guest counts only while it waits.
class Acceptor final {
 public:
  /// Takes a connection to the address of that index.
  using Enter = std::function<void(std::size_t address, int socket)>;

  /// Listens at numeric addresses and @names; `name` is the server's, for the log. Throws SystemFailure naming the
  /// address.
  Acceptor(const std::vector<Address>& addresses, std::string name, base::Duration patience, Log log);
  /// Closes the listening sockets and the waiting guests. `enter` is not called after it.
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  /// The given addresses, with the ports that the system chose for port 0.
  [[nodiscard]] const std::vector<std::string>& addresses() const noexcept { return texts_; }
  /// Accepts connections from now on. `enter` is called on the acceptor's thread.
  void open(Enter enter);
  /// Admits a connection that has proved the secret, by gRPC's name of it. Thread-safe.
  void admit(const std::string& peer);

 private:
  struct Guest {
    Socket socket;  ///< while it is inside: the duplicate
    std::size_t address = 0;
    std::string peer;  ///< gRPC's name of it; empty for a unix socket
    base::Time deadline{};
    bool is_inside = false;  ///< gRPC has it
  };
  using Guests = std::map<std::uint64_t, Guest>;

  void run(const std::stop_token& stop);
  void accept_all(std::size_t address);
  void greet(std::size_t address, Socket socket);
  void on_ready(std::uint64_t key);
  /// The descriptor for gRPC; -1 if the guest left, or has sent nothing yet.
  [[nodiscard]] int take_in(std::uint64_t key) SYNCOPATE_REQUIRES(mutex_);
  /// Closes the oldest guest among those inside, those that wait, or all. False if there is none.
  template <class Is>
  bool drop_oldest(Is is) SYNCOPATE_REQUIRES(mutex_);
  void drop(Guests::iterator guest) SYNCOPATE_REQUIRES(mutex_);
  void expire();
  void rest() SYNCOPATE_REQUIRES(mutex_);
  void watch(int socket, std::uint64_t key, std::uint32_t events) const;
  void forget(int socket) const;
  void say(const std::string& what) SYNCOPATE_REQUIRES(mutex_);

  const std::string name_;
  const base::Duration patience_;
  const Log log_;
  const std::size_t most_waiting_, most_inside_;
  std::vector<std::string> texts_;
  std::vector<Socket> listeners_;
  Socket epoll_, wake_;
  Enter enter_;
  base::Mutex mutex_;
  Guests guests_ SYNCOPATE_GUARDED_BY(mutex_);  ///< keys grow with time
  std::size_t waiting_ SYNCOPATE_GUARDED_BY(mutex_) = 0, inside_ SYNCOPATE_GUARDED_BY(mutex_) = 0;
  std::uint64_t next_key_ SYNCOPATE_GUARDED_BY(mutex_);
  /// The system was out of descriptors, and no guest could be closed.
  base::Time resting_until_ SYNCOPATE_GUARDED_BY(mutex_) = base::kNever;
  base::Time said_at_ SYNCOPATE_GUARDED_BY(mutex_) = {};
  std::jthread thread_;
};

}  // namespace syncopate::server::rpc
