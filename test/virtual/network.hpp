// Network: hosts with virtual sockets that behave as Linux sockets: bounded buffers, half-closed and reset connections.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "transport/socket/system.hpp"
#include "virtual/world.hpp"

namespace syncopate::virtual_world {

namespace socket = transport::socket;

class VirtualWatcher;

/// Delays, buffer sizes and cuts of a network.
struct Weather {
  Duration fastest = 10us, slowest = 200us;    ///< of one way; each connection has its own share of it
  std::size_t buffer = std::size_t{64} << 10;  ///< bytes in flight and unread, per direction
  unsigned pieces_percent = 20;                ///< how often a write is cut
};

/// One end of a connection, or a listener.
struct Socket {
  enum class State : std::uint8_t { fresh, listening, connecting, connected, failed };
  int number = -1;
  int host = -1;
  State state = State::fresh;
  socket::Address local, remote;
  std::vector<std::shared_ptr<Socket>> backlog;
  std::weak_ptr<Socket> peer;
  Duration latency{};
  Time last_arrival{};   ///< of its sent bytes: no later byte overtakes
  std::string in;        ///< arrived and unread
  std::size_t read = 0;  ///< of `in`
  std::size_t room = 0;  ///< left for sending
  std::size_t mark = 1;  ///< SO_RCVLOWAT
  std::size_t most_mark = SIZE_MAX;
  int error = 0;         ///< reported once
  bool has_end = false;  ///< the other end sends no more
  bool is_reset = false;
  bool is_closed = false;   ///< by its owner
  bool is_clogged = false;  ///< a write was cut: room comes with an event
  bool lacks_room = false;  ///< for its owner's last write: a socket with enough room is not woken for more
  VirtualWatcher* watcher = nullptr;
  std::uint64_t key = 0;
  std::uint32_t interest = 0;
  bool has_news = false, is_listed = false;

  [[nodiscard]] std::size_t unread() const noexcept { return in.size() - read; }
  [[nodiscard]] std::uint32_t events() const noexcept;
};
using SocketPtr = std::shared_ptr<Socket>;

class Network final {
 public:
  Network(World& world, const Weather& weather) : world_(world), weather_(weather) {}

  [[nodiscard]] SocketPtr open(int host);
  /// Listens at the socket's local address.
  [[nodiscard]] int listen(const SocketPtr& socket);
  [[nodiscard]] int connect(const SocketPtr& socket, const socket::Address& to);
  [[nodiscard]] ssize_t receive(const SocketPtr& socket, std::span<iovec> into);
  [[nodiscard]] ssize_t send(const SocketPtr& socket, std::span<iovec> from);
  void close(const SocketPtr& socket);

  /// Breaks a connection: both ends are reset.
  void cut(const SocketPtr& socket);
  /// Nothing leaves or reaches that host any more, without notice to any end.
  void isolate(int host) { isolated_.insert(host); }
  [[nodiscard]] std::size_t open_sockets() const noexcept { return open_; }
  [[nodiscard]] World& world() noexcept { return world_; }

 private:
  /// An IPv4 address with its port, as a number; its last address byte is the host's number plus one.
  using Place = std::uint64_t;
  [[nodiscard]] static Place place_of(const socket::Address& address) noexcept;
  [[nodiscard]] static int host_of(Place place) noexcept { return static_cast<int>(place >> 16 & 0xff) - 1; }
  void answer(const SocketPtr& caller, Place to);
  /// Delivers to the other end, after the bytes sent before; `what` returns whether the socket's watcher must look.
  template <class What>
  void deliver(const SocketPtr& from, What what);
  void reset(Socket& socket, int error);
  static void tell(Socket& socket);

  World& world_;
  const Weather weather_;
  std::map<Place, SocketPtr> listeners_;
  std::set<int> isolated_;
  std::vector<SocketPtr> all_;  ///< a kernel also answers for closed sockets
  int next_number_ = 1;
  std::size_t open_ = 0;
};

}  // namespace syncopate::virtual_world
