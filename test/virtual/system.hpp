// VirtualSystem: one rank's machine in the virtual world, and the programs on it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "transport/socket/system.hpp"
#include "virtual/fiber.hpp"
#include "virtual/network.hpp"

namespace syncopate::virtual_world {

/// Unwinds a program whose machine has died.
struct Killed {};

class VirtualSystem;

/// Runs on a machine when it is woken, or when its time has come.
class Runner final : public std::enable_shared_from_this<Runner> {
 public:
  Runner(VirtualSystem& system, std::function<void()> run) : system_(system), run_(std::move(run)) {}
  void ask(Time when);
  void end() noexcept { is_over_ = true; }

 private:
  void come(Time when);
  VirtualSystem& system_;
  std::function<void()> run_;
  Time due_ = kNever;
  std::vector<Time> alarms_;  ///< future events: one that comes too early asks again, so deadlines need not pile up
  bool is_over_ = false;
};

/// Outside a fiber a wait returns at once; in a fiber it suspends the fiber. A program that waits repeatedly at the
/// same time for ready descriptors, without taking what is ready, gets a Timeout.
class VirtualWatcher final : public socket::Watcher {
 public:
  explicit VirtualWatcher(VirtualSystem& system) : system_(system) {}
  ~VirtualWatcher() override;
  void add(int descriptor, std::uint64_t key, std::uint32_t events) override;
  void change(int descriptor, std::uint64_t key, std::uint32_t events) noexcept override;
  void remove(int descriptor) noexcept override;
  [[nodiscard]] std::span<const socket::Ready> wait(Time deadline) override;
  void wake() noexcept override;
  void note(Socket& socket);
  std::weak_ptr<Runner> runner;  ///< the runner that waits here

 private:
  void collect();
  VirtualSystem& system_;
  std::map<int, SocketPtr> watched_;
  std::vector<SocketPtr> listed_;
  std::vector<socket::Ready> ready_;
  bool is_woken_ = false;
  Time last_wait_{};
  int waits_ = 0;  ///< since the time last changed
};

class VirtualSystem final : public socket::System {
 public:
  /// The first port that the system chooses for port 0.
  static constexpr std::uint16_t kFirstPort = 5000;

  VirtualSystem(Network& network, int host) : network_(network), host_(host) {}

  [[nodiscard]] Time now() const override { return network_.world().now(); }
  void draw(base::Bytes into) override;
  [[nodiscard]] std::size_t most_descriptors() noexcept override { return most; }
  [[nodiscard]] std::unique_ptr<socket::Watcher> watcher() override;
  [[nodiscard]] int open(int family) noexcept override;
  void set(int socket, int level, int option, int value) noexcept override;
  [[nodiscard]] int bind(int socket, const socket::Address& to) noexcept override;
  [[nodiscard]] int listen(int socket) noexcept override;
  [[nodiscard]] int connect(int socket, const socket::Address& to) noexcept override;
  [[nodiscard]] int accept(int listener) noexcept override;
  [[nodiscard]] ssize_t receive(int socket, std::span<iovec> into) noexcept override;
  [[nodiscard]] ssize_t send(int socket, std::span<iovec> from) noexcept override;
  [[nodiscard]] socket::Address local_address(int socket) override { return sockets_.at(socket)->local; }
  [[nodiscard]] socket::Address remote_address(int socket) override { return sockets_.at(socket)->remote; }
  void own(int /*descriptor*/) override {}
  void close(int descriptor) noexcept override;

  /// Ends everything that it has open, as at the end of a process.
  void die();
  /// Its programs continue at `until`; its kernel does not stop.
  void stop(Time until) { stopped_until = until; }
  [[nodiscard]] const std::map<int, SocketPtr>& sockets() const noexcept { return sockets_; }
  [[nodiscard]] World& world() noexcept { return network_.world(); }
  [[nodiscard]] int host() const noexcept { return host_; }

  std::size_t most = SIZE_MAX;  ///< the limit of descriptors reported to the program
  Time accepts_again{};         ///< before it, no descriptor is free for accepting
  Time opens_again{};           ///< before it, no descriptor is free for calls
  Time stopped_until{};
  bool is_dead = false;
  std::weak_ptr<Runner> on_watcher;  ///< the runner that waits at watchers made from now on

 private:
  Network& network_;
  const int host_;
  std::map<int, SocketPtr> sockets_;
  std::uint16_t next_port_ = kFirstPort;
};

}  // namespace syncopate::virtual_world
