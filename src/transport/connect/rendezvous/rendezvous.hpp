// Rendezvous: one all-gather of small texts, by which the ranks of a job find each other.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "syncopate/log.hpp"
#include "transport/socket/system.hpp"

namespace syncopate::transport::connect::rendezvous {

inline constexpr std::size_t kMaxText = 4096;

struct Member {
  int rank = 0;
  int size = 1;
};

class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  /// Sends `mine` (at most kMaxText bytes) to every rank and returns all texts by rank. Throws Timeout naming the
  /// missing ranks, Misuse if two processes claim one rank or ranks disagree on the size, Unauthorized, SystemFailure.
  [[nodiscard]] virtual std::vector<std::string> exchange(const Member& me, std::string mine, base::Time deadline) = 0;
};

/// Meeting point of the ranks of one process; shared by their rendezvous.
class Board;
[[nodiscard]] std::shared_ptr<Board> make_board();
[[nodiscard]] std::unique_ptr<Rendezvous> in_memory(std::shared_ptr<Board> board);

/// One file per rank in a folder that all ranks can read; the folder must be new or empty.
[[nodiscard]] std::unique_ptr<Rendezvous> in_folder(std::string folder);

/// Address for ranks of one host and one user: an abstract socket named by user and `name`; or, if that is "fd:N", by
/// the process at the other end of the unix socket N, which all ranks have inherited. Throws Misuse.
[[nodiscard]] socket::Address local_meeting(std::string_view name);

/// A rendezvous over TCP, or over an abstract socket.
struct TcpMeeting {
  socket::Address address;  ///< rank 0 listens here
  std::string secret;       ///< empty: none
  Log log;
  bool tls = false;  ///< the connections to rank 0 are encrypted
  socket::System* system = &socket::kernel();
};
/// Rank 0 gathers and distributes. A deadline is a time of the system's clock.
[[nodiscard]] std::unique_ptr<Rendezvous> over_tcp(TcpMeeting meeting);

/// "ranks 1, 5 and 7": the ranks whose flag is false; at most 16 are listed, then the number of others.
[[nodiscard]] std::string missing_ranks(const std::vector<bool>& present);

}  // namespace syncopate::transport::connect::rendezvous
