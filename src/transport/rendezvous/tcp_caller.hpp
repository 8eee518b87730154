// The side of a rendezvous over TCP that connects: every rank but 0.
#pragma once

#include <optional>

#include "transport/rendezvous/rendezvous.hpp"
#include "transport/rendezvous/tcp_message.hpp"
#include "transport/tcp/door.hpp"
#include "transport/tcp/messenger.hpp"

namespace syncopate::transport::rendezvous {

/// Used once, by one thread.
class TcpCaller final {
 public:
  TcpCaller(const TcpMeeting& meeting, const Member& me, std::string mine);
  [[nodiscard]] std::vector<std::string> ask(base::Time deadline);

 private:
  void connect(base::Time deadline);
  [[nodiscard]] bool try_once(base::Time deadline);
  [[nodiscard]] std::vector<std::string> conclude(const Answer& answer) const;
  [[noreturn]] void give_up(const std::string& why) const;

  TcpMeeting meeting_;
  Member me_;
  std::string mine_;
  tcp::Poller poller_;
  tcp::Door door_;
  std::optional<tcp::Messenger> messenger_;
  std::string last_refusal_;
};

}  // namespace syncopate::transport::rendezvous
