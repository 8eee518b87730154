// TcpCaller: the connecting side of a rendezvous over TCP (every rank but 0).
#pragma once

#include <optional>

#include "transport/connect/acceptor.hpp"
#include "transport/connect/rendezvous/rendezvous.hpp"
#include "transport/connect/rendezvous/tcp_message.hpp"
#include "transport/socket/channel.hpp"

namespace syncopate::transport::connect::rendezvous {

/// Used once, by one thread.
class TcpCaller final {
 public:
  TcpCaller(const TcpMeeting& meeting, const Member& me, std::string mine);
  [[nodiscard]] std::vector<std::string> ask(base::Time deadline);

 private:
  void connect(base::Time deadline);
  [[nodiscard]] bool try_once(base::Time deadline);
  void rest(base::Time until);
  [[nodiscard]] base::Time now() const noexcept { return poller_.system().now(); }
  [[nodiscard]] std::vector<std::string> conclude(const Answer& answer) const;
  [[noreturn]] void give_up(const std::string& why) const;

  TcpMeeting meeting_;
  Member me_;
  std::string mine_;
  socket::Poller poller_;
  Acceptor acceptor_;
  std::optional<socket::FramedChannel> channel_;
  std::string last_refusal_;
  base::Time no_socket_since_ = base::kNever;  ///< calls get no socket
};

}  // namespace syncopate::transport::connect::rendezvous
