// VirtualSystem: numbers to sockets, and epoll's rules: levels, edges, and what is told only once.
#include "virtual/system.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace syncopate::virtual_world {

void Runner::ask(Time when) {
  when = std::max({when, system_.now(), system_.stopped_until});
  if (is_over_ || when >= due_) return;
  due_ = when;
  if (when == kNever) return;
  system_.world().at(when, [self = shared_from_this(), when] {
    if (self->is_over_ || self->due_ != when) return;
    self->due_ = kNever;
    if (self->system_.stopped_until > when) return self->ask(when);
    self->run_();
  });
}

VirtualWatcher::~VirtualWatcher() {
  for (const auto& [number, socket] : watched_) socket->watcher = nullptr;
}

void VirtualWatcher::add(int descriptor, std::uint64_t key, std::uint32_t events) {
  const SocketPtr& socket = system_.sockets().at(descriptor);
  watched_[descriptor] = socket;
  socket->watcher = this;
  change(descriptor, key, events);
}

void VirtualWatcher::change(int descriptor, std::uint64_t key, std::uint32_t events) noexcept {
  const auto found = watched_.find(descriptor);
  if (found == watched_.end()) return;
  found->second->key = key;
  found->second->interest = events;
  note(*found->second);
}

void VirtualWatcher::remove(int descriptor) noexcept {
  const auto found = watched_.find(descriptor);
  if (found == watched_.end()) return;
  found->second->watcher = nullptr;
  std::erase(listed_, found->second);
  found->second->is_listed = found->second->has_news = false;
  watched_.erase(found);
}

void VirtualWatcher::note(Socket& socket) {
  const std::uint32_t wanted = socket.interest | EPOLLERR | EPOLLHUP;
  if ((socket.events() & wanted) == 0) return;
  socket.has_news = true;
  if (!socket.is_listed) listed_.push_back(watched_.at(socket.number));
  socket.is_listed = true;
  if (const auto waits = runner.lock()) waits->ask(system_.now() + system_.world().draw(Duration{0}, Duration{20us}));
}

void VirtualWatcher::collect() {
  std::erase_if(listed_, [&](const SocketPtr& socket) {
    const std::uint32_t events = socket->events() & (socket->interest | EPOLLERR | EPOLLHUP);
    const bool is_edge = (socket->interest & EPOLLET) != 0;
    const bool is_told = socket->watcher == this && events != 0 && (!is_edge || socket->has_news);
    if (is_told) ready_.push_back({socket->key, events});
    socket->has_news = false;
    socket->is_listed = is_told && !is_edge;  // a level is looked at again
    return !socket->is_listed;
  });
}

std::span<const socket::Ready> VirtualWatcher::wait(Time deadline) {
  ready_.clear();
  for (;;) {
    if (system_.is_dead) throw Killed{};
    collect();
    const bool is_over = !ready_.empty() || is_woken_ || system_.now() >= deadline;
    is_woken_ = false;
    if (is_over || Fiber::running() == nullptr) return ready_;
    if (const auto waits = runner.lock()) waits->ask(deadline);
    Fiber::suspend();
  }
}

void VirtualWatcher::wake() noexcept {
  is_woken_ = true;
  if (const auto waits = runner.lock()) waits->ask(system_.now() + system_.world().draw(Duration{0}, Duration{20us}));
}

void VirtualSystem::draw(base::Bytes into) {
  for (std::byte& byte : into) byte = static_cast<std::byte>(world().draw(0, 255));
}

std::unique_ptr<socket::Watcher> VirtualSystem::watcher() {
  auto made = std::make_unique<VirtualWatcher>(*this);
  made->runner = on_watcher;
  return made;
}

int VirtualSystem::open(int /*family*/) noexcept {
  errno = EMFILE;
  if (now() < opens_again) return -1;
  const SocketPtr made = network_.open(host_);
  sockets_[made->number] = made;
  return made->number;
}

void VirtualSystem::set(int socket, int level, int option, int value) noexcept {
  if (level != SOL_SOCKET || option != SO_RCVLOWAT) return;
  Socket& changed = *sockets_.at(socket);
  changed.mark = static_cast<std::size_t>(std::max(value, 1));
  if (changed.watcher != nullptr && changed.unread() >= changed.mark) changed.watcher->note(changed);
}

int VirtualSystem::bind(int socket, const socket::Address& to) noexcept {
  sockets_.at(socket)->local = to;
  return 0;
}

int VirtualSystem::listen(int socket) noexcept { return network_.listen(sockets_.at(socket)); }

int VirtualSystem::connect(int socket, const socket::Address& to) noexcept {
  sockets_.at(socket)->local = socket::Address::parse("10.0.0.1:1");
  return network_.connect(sockets_.at(socket), to);
}

int VirtualSystem::accept(int listener) noexcept {
  Socket& from = *sockets_.at(listener);
  errno = from.backlog.empty() ? EAGAIN : EMFILE;
  if (from.backlog.empty() || now() < accepts_again) return -1;
  const SocketPtr taken = from.backlog.front();
  from.backlog.erase(from.backlog.begin());
  sockets_[taken->number] = taken;
  return taken->number;
}

ssize_t VirtualSystem::receive(int socket, std::span<iovec> into) noexcept {
  return network_.receive(sockets_.at(socket), into);
}

ssize_t VirtualSystem::send(int socket, std::span<iovec> from) noexcept {
  return network_.send(sockets_.at(socket), from);
}

void VirtualSystem::close(int descriptor) noexcept {
  const auto found = sockets_.find(descriptor);
  if (found == sockets_.end()) return;  // the end of the process has closed it
  const SocketPtr gone = found->second;
  sockets_.erase(found);
  network_.close(gone);
}

void VirtualSystem::die() {
  is_dead = true;
  world().note("dies", static_cast<std::uint64_t>(host_));
  for (const auto& [number, socket] : sockets_) network_.close(socket);
}

}  // namespace syncopate::virtual_world
