// Meet: the exchange at the rendezvous with its checks, and the results that all ranks compute alike from it.
#include "transport/meet.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "base/env.hpp"
#include "base/require.hpp"
#include "syncopate/version.hpp"
#include "transport/connect/handshake.hpp"
#include "transport/shm/transport.hpp"
#include "transport/socket/socket.hpp"
#include "transport/tcp/transport.hpp"

namespace syncopate::transport {

namespace {

/// Which ranks share memory with rank `me`.
std::vector<bool> neighbours(const std::vector<connect::PeerInfo>& all, std::size_t me) {
  const connect::PeerInfo& mine = all[me];
  std::vector<bool> near;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const connect::PeerInfo& other = all[rank];
    near.push_back(rank != me && all[0].transport != TransportChoice::tcp && !mine.memory_socket.empty() &&
                   !other.memory_socket.empty() && mine.host == other.host && mine.owner == other.owner);
    base::require(near.back() || rank == me || all[0].transport != TransportChoice::shm,
                  "transport shm is requested, but ranks {} and {} share no memory (another host, another user, or "
                  "their own transport is tcp); allowed here: auto, tcp",
                  me, rank);
  }
  return near;
}

/// Whether this host has more ranks than cores that this rank may use.
bool crowded(const std::vector<connect::PeerInfo>& all, const connect::PeerInfo& mine) {
  const auto ranks = std::count_if(all.begin(), all.end(), [&](const auto& other) { return other.host == mine.host; });
  return ranks > base::processors();
}

}  // namespace

std::uint64_t random_name(socket::System& system) {
  std::array<std::byte, sizeof(std::uint64_t)> drawn;
  system.draw(drawn);
  return base::get<std::uint64_t>(drawn, 0);
}

connect::PeerInfo info_of(const JoiningRank& me, const std::vector<socket::Descriptor>& listeners, bool lends) {
  const GroupOptions& options = me.options;
  return {.version = std::string(version()),
          .address = socket::local_address(listeners[0]).text(),
          .host = me.host,
          .memory_socket = listeners.size() > 1 ? socket::local_address(listeners[1]).text().substr(1) : "",
          .lends = lends,
          .owner = me.owner,
          .group = random_name(me.system),
          .streams = static_cast<std::uint32_t>(*options.streams),
          .checksum = *options.checksum,
          .transport = *options.transport,
          .silence_ms = options.silence->count(),
          .has_cluster = !options.cluster.empty(),
          .tls = *options.tls};
}

Meeting meet(const JoiningRank& me, connect::rendezvous::Rendezvous& meeting, const connect::PeerInfo& mine,
             base::Time deadline) {
  const int rank = *me.options.rank, size = *me.options.size;
  const std::string sealed = connect::seal(encode(mine), {rank, size}, me.secret);
  const auto texts = meeting.exchange({rank, size}, sealed, deadline);
  if (texts.at(static_cast<std::size_t>(rank)) != sealed)
    throw Unauthorized("another process has replaced this rank's text at the rendezvous", {.rank = rank});
  Meeting result{.all = {}, .digest = base::crypto::digest_of(texts)};
  for (int other = 0; other < size; ++other) {
    const std::string text = connect::unseal(texts[static_cast<std::size_t>(other)], {other, size}, me.secret);
    result.all.push_back(connect::decode_peer_info(text, other));
    // Tests give ranks other host names; they still run here, so loopback reaches them.
    if (mine.host != result.all.back().host && mine.host == socket::host_identity())
      connect::require_reachable(mine, result.all.back(), other);
  }
  const connect::PeerInfo& leader = result.all.front();
  base::require(leader.streams >= 1 && leader.streams <= 16 && leader.silence_ms >= connect::kShortestSilence.count(),
                "rank 0 wants {} streams and {} ms of silence; allowed: 1 to 16, and {} ms and more", leader.streams,
                leader.silence_ms, connect::kShortestSilence.count());
  return result;
}

/// Computed from the texts of all ranks, not from this rank's own links: the choice of algorithms depends on it and
/// must be the same on all ranks.
std::string kind_of(const std::vector<connect::PeerInfo>& all) {
  const TransportChoice wanted = all[0].transport;
  std::map<std::pair<std::string, std::string>, std::size_t> ranks;  // that can share memory, by host and owner
  for (const connect::PeerInfo& rank : all)
    if (!rank.memory_socket.empty()) ++ranks[{rank.host, rank.owner}];
  std::size_t most = 0;
  for (const auto& [place, count] : ranks) most = std::max(most, count);
  if (wanted == TransportChoice::tcp || (most < 2 && wanted != TransportChoice::shm)) return "tcp";
  return most == all.size() ? "shm" : "shm+tcp";
}

membership::ControlOptions control_options_of(const JoiningRank& newcomer, const Meeting& result, base::Time deadline) {
  const GroupOptions& options = newcomer.options;
  const std::vector<connect::PeerInfo>& all = result.all;
  const auto me = static_cast<std::size_t>(*options.rank);
  membership::ControlOptions made{.rank = *options.rank,
                                  .source = socket::Address::parse(all[me].address).with_port(0),
                                  .group = all[0].group,
                                  .secret = newcomer.secret,
                                  .meeting = result.digest,
                                  .tls = connect::agreed_tls(all),
                                  .streams = all[0].streams,
                                  .silence = std::chrono::milliseconds(all[0].silence_ms),
                                  .log = options.log};
  made.join_time = std::max(deadline - newcomer.system.now(), made.silence);
  const std::vector<bool> near = neighbours(all, me);
  for (std::size_t other = 0; other < all.size(); ++other) {
    made.addresses.push_back(socket::Address::parse(all[other].address));
    made.memory_sockets.push_back(near[other] ? socket::Address::named(all[other].memory_socket) : socket::Address());
  }
  return made;
}

std::unique_ptr<Transport> links_of(const JoiningRank& newcomer, const std::vector<connect::PeerInfo>& all,
                                    const LinkParts& parts) {
  const GroupOptions& options = newcomer.options;
  const tcp::TransportOptions by_socket{.rank = *options.rank,
                                        .size = *options.size,
                                        .streams = all[0].streams,
                                        .rules = {.group = all[0].group, .epoch = 0, .checksum = all[0].checksum}};
  auto far = std::make_unique<tcp::TcpTransport>(by_socket, parts.control, parts.mailbox);
  if (kind_of(all) == "tcp") return far;
  const auto me = static_cast<std::size_t>(*options.rank);
  // Vectors lie in the group's memory on all ranks or on none, because plans depend on it.
  const bool all_lend = std::ranges::all_of(all, &connect::PeerInfo::lends);
  const shm::ShmOptions by_memory{.rank = *options.rank,
                                  .near = neighbours(all, me),
                                  .crowded = crowded(all, all[me]),
                                  .heap = all_lend ? parts.heap : shm::Heap::of(0)};
  return std::make_unique<shm::ShmTransport>(by_memory, std::move(far), parts.control, parts.mailbox);
}

}  // namespace syncopate::transport
