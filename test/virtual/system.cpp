// VirtualSystem: numbers to sockets, and epoll's rules: levels, edges, and events that are reported only once.
#include "virtual/system.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "syncopate/error.hpp"

namespace syncopate::virtual_world {

namespace {
constexpr int kMostWaits = 10'000;
}

void Runner::ask(Time when) {
  when = std::max({when, system_.now(), system_.stopped_until});
  if (is_over_ || when >= due_) return;
  due_ = when;
  if (when == kNever || std::ranges::any_of(alarms_, [&](Time alarm) { return alarm <= when; })) return;
  alarms_.push_back(when);
  system_.world().at(when, [self = shared_from_this(), when] { self->come(when); });
}

void Runner::come(Time when) {
  std::erase(alarms_, when);
  if (is_over_) return;
  const Time due = std::exchange(due_, kNever);
  if (due > when || system_.stopped_until > when) return ask(due);
  run_();
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
    socket->is_listed = is_told && !is_edge;  // a level is checked again
    return !socket->is_listed;
  });
}

std::span<const socket::Ready> VirtualWatcher::wait(Time deadline) {
  ready_.clear();
  waits_ = last_wait_ == system_.now() ? waits_ + 1 : 0;
  last_wait_ = system_.now();
  if (waits_ > kMostWaits) throw Timeout("it spins: it does not take what its poller announces");
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
  sockets_.at(socket)->local = to.port() != 0 ? to : to.with_port(next_port_++);
  return 0;
}

int VirtualSystem::listen(int socket) noexcept { return network_.listen(sockets_.at(socket)); }

int VirtualSystem::connect(int socket, const socket::Address& to) noexcept {
  static const auto kSomewhere = socket::Address::parse("10.0.0.1:1");
  sockets_.at(socket)->local = kSomewhere;
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
