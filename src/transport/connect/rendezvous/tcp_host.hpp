// TcpHost: the listening side of a rendezvous over TCP (rank 0).
#pragma once

#include <map>
#include <memory>

#include "transport/connect/acceptor.hpp"
#include "transport/connect/rendezvous/rendezvous.hpp"
#include "transport/connect/rendezvous/tcp_message.hpp"
#include "transport/socket/channel.hpp"

namespace syncopate::transport::connect::rendezvous {

/// Used once, by one thread.
class TcpHost final {
 public:
  TcpHost(const TcpMeeting& meeting, const Member& me, std::string mine);
  [[nodiscard]] std::vector<std::string> gather(base::Time deadline);

 private:
  struct Guest {
    socket::FramedChannel channel;
    int rank = -1;
    bool has_request = false;  ///< its request has arrived
  };
  using Guests = std::map<std::uint64_t, Guest>;

  void step(base::Time deadline);
  void admit();
  void read_request(Guests::iterator guest);
  void accept_request(Guest& guest, const Request& request);
  void dismiss(Guests::iterator guest);
  void answer_all(const Answer& answer);
  [[noreturn]] void turn_away(const std::string& why);
  [[nodiscard]] base::Time now() const noexcept { return poller_.system().now(); }
  [[noreturn]] void fail(ErrorKind kind, const std::string& message);

  Member me_;
  std::string address_;
  Log log_;
  socket::Poller poller_;
  Acceptor acceptor_;
  socket::Descriptor reserve_;  ///< for a caller, when this process has no other
  Guests guests_;
  std::uint64_t next_key_ = 1;
  std::vector<std::string> texts_;
  std::vector<bool> present_;
  std::size_t count_ = 0;
  base::Time earliest_deadline_ = base::kNever;  ///< of the guests
};

}  // namespace syncopate::transport::connect::rendezvous
