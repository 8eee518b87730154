// Streams between virtual processes: a message arrives whole, late and in order, or the stream ends.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "server/rpc/stream.hpp"
#include "virtual/world.hpp"

namespace syncopate::virtual_server {

using virtual_world::Duration, virtual_world::Time, virtual_world::World;
using namespace std::chrono_literals;

inline constexpr Duration kMostDelay = 20ms;  ///< of a message

/// State that two ends share. Priorities are not simulated: no message overtakes another.
struct Wire {
  World& world;
  std::array<server::rpc::StreamEvents, 2> events{};
  std::array<const Time*, 2> stopped_until{};  ///< of the processes; they outlive the wire's ends
  std::array<Time, 2> last{};
  std::array<bool, 2> has_ended{};
  std::array<std::deque<server::Payload>, 2> unread{};  ///< came while the process was stopped
  bool is_open = true;

  void arrive(const std::shared_ptr<Wire>& self, std::size_t at, server::Payload message);
  void finish(std::size_t at, const server::rpc::Ending& how);

 private:
  [[nodiscard]] bool is_stopped(std::size_t at) const;
  void go_on(const std::shared_ptr<Wire>& self, std::size_t at);
  void take(const std::shared_ptr<Wire>& self, std::size_t at, server::Payload message);
};

class End final : public server::rpc::Stream {
 public:
  End(std::shared_ptr<Wire> wire, std::size_t side, std::string peer)
      : wire_(std::move(wire)), side_(side), peer_(std::move(peer)) {}
  ~End() override { End::end(); }
  void end() override;
  void send(std::uint64_t priority, base::ConstBytes head, server::Payload body) override;
  void close(std::string_view error) override;
  [[nodiscard]] const std::string& peer() const noexcept override { return peer_; }

 private:
  void later(std::function<void()> what);
  const std::shared_ptr<Wire> wire_;
  const std::size_t side_;
  const std::string peer_;
  bool is_closed_ = false;
};

}  // namespace syncopate::virtual_server
