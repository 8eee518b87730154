// Network: makes and breaks connections, and moves bytes in order, in pieces, and late.
#include "virtual/network.hpp"

#include <netinet/in.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "virtual/system.hpp"

namespace syncopate::virtual_world {

namespace {
ssize_t fails(int error) {
  errno = error;
  return -1;
}
}  // namespace

std::uint32_t Socket::events() const noexcept {
  if (state == State::listening) return backlog.empty() ? 0U : std::uint32_t{EPOLLIN};
  if (state == State::failed) return EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP;
  if (state != State::connected) return 0;
  std::uint32_t events = 0;
  if (unread() >= std::min(mark, most_mark) || has_end || is_reset) events |= EPOLLIN;
  if ((room > 0 && !is_clogged) || is_reset) events |= EPOLLOUT;
  if (has_end || is_reset) events |= EPOLLRDHUP;
  if (is_reset) events |= EPOLLHUP | EPOLLERR;
  return events;
}

template <class What>
void Network::deliver(const SocketPtr& from, What what) {
  SocketPtr to = from->peer.lock();
  if (!to) return;
  from->last_arrival = std::max(world_.now() + world_.draw(from->latency, 2 * from->latency), from->last_arrival + 1ns);
  world_.at(from->last_arrival, [this, host = from->host, to = std::move(to), what = std::move(what)]() mutable {
    if (isolated_.contains(host) || isolated_.contains(to->host)) return;
    if (what(*to)) tell(*to);
  });
}

void Network::tell(Socket& socket) {
  if (socket.watcher != nullptr) socket.watcher->note(socket);
}

SocketPtr Network::open(int host) {
  auto made = std::make_shared<Socket>();
  made->number = next_number_++;
  made->host = host;
  ++open_;
  all_.push_back(made);
  return made;
}

int Network::listen(const SocketPtr& socket) {
  if (!listeners_.emplace(place_of(socket->local), socket).second) return static_cast<int>(fails(EADDRINUSE));
  socket->state = Socket::State::listening;
  return 0;
}

int Network::connect(const SocketPtr& socket, const socket::Address& to) {
  socket->state = Socket::State::connecting;
  socket->remote = to;
  socket->latency = world_.draw(weather_.fastest, weather_.slowest);
  world_.note("calls", static_cast<std::uint64_t>(socket->number));
  world_.in(socket->latency, [this, socket, to = place_of(to)] { answer(socket, to); });
  return static_cast<int>(fails(EINPROGRESS));
}

Network::Place Network::place_of(const socket::Address& address) noexcept {
  const auto& raw = reinterpret_cast<const sockaddr_in&>(*address.raw());
  return Place{ntohl(raw.sin_addr.s_addr)} << 16 | ntohs(raw.sin_port);
}

/// The answer of the other host's kernel, independent of its program.
void Network::answer(const SocketPtr& caller, Place to) {
  if (caller->is_closed || isolated_.contains(host_of(to)) || isolated_.contains(caller->host)) return;
  const auto found = listeners_.find(to);
  if (found == listeners_.end()) {
    world_.in(caller->latency, [this, caller] {
      if (!isolated_.contains(caller->host) && !caller->is_closed) reset(*caller, ECONNREFUSED);
    });
    return;
  }
  const SocketPtr listener = found->second;
  const SocketPtr called = open(listener->host);
  called->state = Socket::State::connected;
  called->local = listener->local;
  called->remote = caller->local;
  called->latency = caller->latency;
  called->room = caller->room = weather_.buffer;
  // The kernel announces less than the mark when its memory runs out.
  called->most_mark = caller->most_mark = std::max<std::size_t>(1, weather_.buffer / 2);
  called->peer = caller;
  caller->peer = called;
  listener->backlog.push_back(called);
  tell(*listener);
  deliver(called, [](Socket& socket) {
    socket.state = Socket::State::connected;
    return true;
  });
}

void Network::reset(Socket& socket, int error) {
  socket.state = socket.state == Socket::State::connecting ? Socket::State::failed : socket.state;
  socket.error = error;
  socket.is_reset = true;
  tell(socket);
}

ssize_t Network::receive(const SocketPtr& socket, std::span<iovec> into) {
  if (socket->state == Socket::State::connecting) return fails(EAGAIN);
  std::size_t taken = 0;
  for (const iovec& piece : into) {
    const std::size_t bytes = std::min(piece.iov_len, socket->unread());
    std::memcpy(piece.iov_base, socket->in.data() + socket->read, bytes);
    socket->read += bytes;
    taken += bytes;
  }
  if (socket->unread() == 0) {
    socket->in.clear();
    socket->read = 0;
  }
  if (taken == 0) {
    if (socket->error != 0) return fails(std::exchange(socket->error, 0));
    return socket->has_end || socket->is_reset ? 0 : fails(EAGAIN);
  }
  // The sender learns of the freed room.
  deliver(socket, [taken](Socket& sender) {
    sender.room += taken;
    return std::exchange(sender.lacks_room, false);
  });
  return static_cast<ssize_t>(taken);
}

ssize_t Network::send(const SocketPtr& socket, std::span<iovec> from) {
  if (socket->state == Socket::State::connecting) return fails(EAGAIN);
  if (socket->error != 0) return fails(std::exchange(socket->error, 0));
  if (socket->is_reset || socket->state != Socket::State::connected) return fails(EPIPE);
  if (socket->room == 0) socket->lacks_room = true;
  if (socket->is_clogged || socket->room == 0) return fails(EAGAIN);
  std::string bytes;
  for (const iovec& piece : from) {
    const std::size_t most = socket->room - bytes.size();
    bytes.append(static_cast<const char*>(piece.iov_base), std::min(piece.iov_len, most));
    socket->lacks_room |= piece.iov_len > most;
  }
  if (bytes.size() > 1 && world_.happens(weather_.pieces_percent)) {
    bytes.resize(world_.draw(1, bytes.size() - 1));
    socket->is_clogged = true;  // the kernel had no memory for more
    world_.in(world_.draw(Duration{1us}, Duration{100us}), [socket] {
      socket->is_clogged = false;
      tell(*socket);
    });
  }
  socket->room -= bytes.size();
  const std::size_t sent = bytes.size();
  deliver(socket, [this, bytes = std::move(bytes)](Socket& to) {
    world_.note("hears", static_cast<std::uint64_t>(to.number), bytes.size());
    if (!to.is_closed) {
      to.in += bytes;
      return true;
    }
    const SocketPtr sender = to.peer.lock();
    deliver(sender->peer.lock(), [this](Socket& late) {  // no reader is left: the kernel answers with a reset
      if (!late.is_closed && !late.is_reset) reset(late, late.has_end ? EPIPE : ECONNRESET);
      return true;
    });
    return false;
  });
  return static_cast<ssize_t>(sent);
}

void Network::close(const SocketPtr& socket) {
  if (socket->is_closed) return;
  socket->is_closed = true;
  --open_;
  if (socket->watcher != nullptr) socket->watcher->remove(socket->number);
  if (socket->state == Socket::State::listening) {
    listeners_.erase(place_of(socket->local));
    for (const SocketPtr& waiting : std::exchange(socket->backlog, {})) {
      waiting->in.assign(1, '\0');  // waiting callers are reset
      close(waiting);
    }
    return;
  }
  if (socket->state != Socket::State::connected || socket->is_reset) return;
  if (socket->unread() > 0)
    deliver(socket, [this](Socket& to) {
      if (!to.is_closed && !to.is_reset) reset(to, ECONNRESET);
      return true;
    });
  else
    deliver(socket, [](Socket& to) { return to.has_end = true; });
}

void Network::cut(const SocketPtr& socket) {
  world_.note("is cut", static_cast<std::uint64_t>(socket->number));
  if (const SocketPtr peer = socket->peer.lock(); peer && !peer->is_closed) reset(*peer, ECONNRESET);
  reset(*socket, ECONNRESET);
}

}  // namespace syncopate::virtual_world
