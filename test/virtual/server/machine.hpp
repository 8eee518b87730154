// Machine: the host of one process of a job: the production streams over a virtual system, fed when something is due.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/streams/loop.hpp"
#include "virtual/network.hpp"
#include "virtual/system.hpp"

namespace syncopate::server {

using virtual_world::Duration, virtual_world::Time, virtual_world::World;
using namespace std::chrono_literals;

inline constexpr Duration kSilence = 500ms;

class Machine final {
 public:
  /// `accepted` is called only if it listens.
  Machine(virtual_world::Network& network, std::size_t host, const streams::Identity& self,
          streams::Accepted accepted = {});
  /// The process ends: its kernel closes what it had open.
  ~Machine() { die(); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  /// From now on runs the turns of the process's shell: now, at the time that `turn` returns, and after `ask`. The
  /// program looks at what has come after them, and after those of the streams.
  void run(std::function<Time()> turn, std::function<void()> look = {});
  void ask();
  void listen();
  /// Server `server` is on the host of that number.
  void dial(std::size_t server, streams::DialEvents events);
  [[nodiscard]] static std::string address_of(std::size_t host);
  /// Its lines become notes of the history.
  [[nodiscard]] syncopate::Log log();
  /// The process does not run before `until`; its kernel does.
  void stop(Time until) { system_.stop(until); }
  [[nodiscard]] bool is_stopped() const { return system_.now() < system_.stopped_until; }
  [[nodiscard]] Time stopped_until() const { return system_.stopped_until; }
  /// Breaks its connection to that server. False: there is none.
  bool cut(std::size_t server);
  void die();
  /// Outside its turns: dies; no event comes afterwards.
  void end();

 private:
  virtual_world::Network& network_;
  const std::size_t host_;
  virtual_world::VirtualSystem system_;
  std::shared_ptr<virtual_world::Runner> runner_, turns_;  ///< of the streams, and of the shell
  std::function<void()> look_;
  std::unique_ptr<streams::Loop> loop_;
};

}  // namespace syncopate::server
