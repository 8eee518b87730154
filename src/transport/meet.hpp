// Meet: what a rank says and hears at the rendezvous, and what control and links are made of after it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/connect/launch.hpp"
#include "transport/connect/peer_info.hpp"
#include "transport/connect/rendezvous/rendezvous.hpp"
#include "transport/membership/tree_control.hpp"
#include "transport/shm/heap.hpp"
#include "transport/socket/identity.hpp"
#include "transport/transport.hpp"

namespace syncopate::transport {

/// A rank that joins.
struct Newcomer {
  const GroupOptions& options;  ///< `rank` and `size` are set
  std::string secret;           ///< empty: none
  socket::System& system;
  std::string host = socket::host_identity();   ///< ranks that name the same one may share memory,
  std::string owner = socket::user_identity();  ///< where their owner is the same
};

/// What came of the rendezvous, in this rank's eyes.
struct Met {
  std::vector<connect::PeerInfo> all;
  connect::Digest digest{};  ///< of all texts: handshakes succeed only between ranks that were told the same
};

/// 64 random bits: the name of a group, or of a socket.
[[nodiscard]] std::uint64_t random_name(socket::System& system);

/// What this rank says: the first of its listeners is where it lets ranks in, the second, if any, where those that
/// share memory. `lends`: vectors in its memory are within their reach.
[[nodiscard]] connect::PeerInfo info_of(const Newcomer& me, const std::vector<socket::Descriptor>& listeners,
                                        bool lends);
/// Tells all ranks `mine`, and checks what they say: each text's seal, versions, hosts. Throws as
/// `Rendezvous::exchange`; Unauthorized, Misuse and Corrupt for what does not fit.
[[nodiscard]] Met meet(const Newcomer& me, connect::rendezvous::Rendezvous& meeting, const connect::PeerInfo& mine,
                       base::Time deadline);

/// The group's kind of transport: "tcp", "shm" or "shm+tcp".
[[nodiscard]] std::string kind_of(const std::vector<connect::PeerInfo>& all);
/// Throws Misuse where the ranks' settings do not come to the same.
[[nodiscard]] membership::ControlOptions control_options_of(const Newcomer& me, const Met& met);

/// What links are made of.
struct LinkParts {
  std::shared_ptr<membership::TreeControl> control;
  std::shared_ptr<membership::Mailbox> mailbox;
  std::shared_ptr<shm::Heap> heap;
};
[[nodiscard]] std::unique_ptr<Transport> links_of(const Newcomer& me, const std::vector<connect::PeerInfo>& all,
                                                  const LinkParts& parts);

}  // namespace syncopate::transport
