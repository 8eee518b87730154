// Meet: what a rank sends and receives at the rendezvous, and the parts of control and links that follow from it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/connect/launch.hpp"
#include "transport/connect/peer_info.hpp"
#include "transport/connect/rendezvous/rendezvous.hpp"
#include "transport/membership/control_protocol.hpp"
#include "transport/shm/heap.hpp"
#include "transport/socket/address.hpp"
#include "transport/transport.hpp"

namespace syncopate::transport {

/// A rank that joins.
struct JoiningRank {
  const GroupOptions& options;  ///< `rank` and `size` are set
  std::string secret;           ///< empty: none
  socket::System& system;
  std::string host = socket::host_identity();  ///< ranks with equal host and owner may share memory
  std::string owner = socket::user_identity();
};

/// The result of the rendezvous for this rank.
struct Meeting {
  std::vector<connect::PeerInfo> all;
  connect::Digest digest{};  ///< of all texts: handshakes succeed only between ranks that received the same texts
};

/// 64 random bits: the name of a group, or of a socket.
[[nodiscard]] std::uint64_t random_name(socket::System& system);

/// The text of this rank. It lets ranks in at the first of its listeners; at the second, if any, ranks that share
/// memory. `lends`: such ranks reach vectors in its memory.
[[nodiscard]] connect::PeerInfo info_of(const JoiningRank& me, const std::vector<socket::Descriptor>& listeners,
                                        bool lends);
/// Sends `mine` to all ranks and checks their texts: seals, versions, hosts. Throws as `Rendezvous::exchange`, and
/// Unauthorized, Misuse or Corrupt for a text that does not fit.
[[nodiscard]] Meeting meet(const JoiningRank& me, connect::rendezvous::Rendezvous& meeting,
                           const connect::PeerInfo& mine, base::Time deadline);

/// The group's kind of transport: "tcp", "shm" or "shm+tcp".
[[nodiscard]] std::string kind_of(const std::vector<connect::PeerInfo>& all);
/// Throws Misuse if the ranks' settings conflict. `deadline` is that of joining. If the rendezvous, which all ranks
/// have reached, took until close to it, the ranks still get the agreed silence to connect.
[[nodiscard]] membership::ControlOptions control_options_of(const JoiningRank& me, const Meeting& result,
                                                            base::Time deadline);

/// The parts that links are made of.
struct LinkParts {
  std::shared_ptr<membership::ControlProtocol> control;
  std::shared_ptr<membership::Mailbox> mailbox;
  std::shared_ptr<shm::Heap> heap;
};
[[nodiscard]] std::unique_ptr<Transport> links_of(const JoiningRank& me, const std::vector<connect::PeerInfo>& all,
                                                  const LinkParts& parts);

}  // namespace syncopate::transport
