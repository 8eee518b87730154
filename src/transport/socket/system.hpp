// System: the machine as a rank uses it: clock, random bytes, sockets, and waiting for them.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "transport/socket/address.hpp"

namespace syncopate::transport::socket {

struct Ready {
  std::uint64_t key = 0;
  std::uint32_t events = 0;  ///< EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLHUP, EPOLLERR
};

/// Base of `Poller`: watches descriptors of one system by the rules of epoll.
class Watcher {
 public:
  virtual ~Watcher() = default;
  /// Throws SystemFailure.
  virtual void add(int descriptor, std::uint64_t key, std::uint32_t events) = 0;
  virtual void change(int descriptor, std::uint64_t key, std::uint32_t events) noexcept = 0;
  virtual void remove(int descriptor) noexcept = 0;
  /// See `Poller`.
  [[nodiscard]] virtual std::span<const Ready> wait(base::Time deadline) = 0;
  virtual void wake() noexcept = 0;
};

/// Sockets are numbers of this system and never block. Law: results and errno are those of Linux for a stream socket;
/// -1 is a failure. Time passes here and nowhere else. Thread-safe.
class System : public base::Clock {
 public:
  [[nodiscard]] base::Time now() const override = 0;
  /// Fills `into` with unpredictable bytes. Throws SystemFailure.
  virtual void draw(base::Bytes into) = 0;
  /// Limit of this process's descriptors; SIZE_MAX: without a limit.
  [[nodiscard]] virtual std::size_t most_descriptors() noexcept = 0;
  /// Throws SystemFailure.
  [[nodiscard]] virtual std::unique_ptr<Watcher> watcher() = 0;

  [[nodiscard]] virtual int open(int family) noexcept = 0;
  virtual void set(int socket, int level, int option, int value) noexcept = 0;
  [[nodiscard]] virtual int bind(int socket, const Address& to) noexcept = 0;
  [[nodiscard]] virtual int listen(int socket) noexcept = 0;
  [[nodiscard]] virtual int connect(int socket, const Address& to) noexcept = 0;
  [[nodiscard]] virtual int accept(int listener) noexcept = 0;
  [[nodiscard]] virtual ssize_t receive(int socket, std::span<iovec> into) noexcept = 0;
  [[nodiscard]] virtual ssize_t send(int socket, std::span<iovec> from) noexcept = 0;
  [[nodiscard]] virtual Address local_address(int socket) = 0;
  [[nodiscard]] virtual Address remote_address(int socket) = 0;  ///< empty if there is none

  /// Registers that a descriptor has an owner from now on.
  virtual void own(int descriptor) = 0;
  virtual void close(int descriptor) noexcept = 0;
};

/// The system of this machine.
[[nodiscard]] System& kernel() noexcept;

}  // namespace syncopate::transport::socket
