// Joining processes: listen, exchange peer info, build the control tree, and make the links.
#include "transport/join.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>

#include "base/env.hpp"
#include "base/require.hpp"
#include "syncopate/version.hpp"
#include "transport/connect/peer_info.hpp"
#include "transport/connect/seal.hpp"
#include "transport/delay.hpp"
#include "transport/membership/control_thread.hpp"
#include "transport/shm/membarrier.hpp"
#include "transport/shm/transport.hpp"

namespace syncopate::transport {

namespace {

constexpr std::string_view kTcp = "tcp://", kFile = "file://", kLocal = "local://";

std::uint64_t random_group() {
  std::random_device source;
  return (static_cast<std::uint64_t>(source()) << 32) | source();
}

/// The address this rank listens on and sends from: as told, or the one that faces the rendezvous.
socket::Address own_address(const GroupOptions& options) {
  if (!options.interface.empty()) return socket::interface_address(options.interface);
  if (options.rendezvous.starts_with(kTcp))
    if (const socket::Address meeting = socket::Address::resolve(options.rendezvous.substr(kTcp.size()));
        !meeting.loopback())
      return socket::source_toward(meeting);
  return socket::interface_address("127.0.0.1");
}

/// This rank's heap; null where it may not have as many addresses as that takes.
std::shared_ptr<shm::Heap> make_heap(const GroupOptions& options) try {
  auto heap = *options.size > 1 ? shm::Heap::make() : nullptr;
  return heap && heap->bytes() > 0 ? heap : nullptr;
} catch (const SystemFailure& failure) {
  options.log.write(LogLevel::info, fmt::format("no memory that other ranks reach: {}", failure.what()));
  return nullptr;
}

/// A listener for ranks that share this one's memory; none where the system has no shared memory.
socket::Descriptor listen_for_memory(const GroupOptions& options) {
  if (options.transport == "tcp" || *options.size == 1) return {};
  try {
    if (!shm::register_for_membarrier()) throw SystemFailure("the system has no barriers between processes");
    static_cast<void>(shm::Region::make());
    return socket::listen_on(
        socket::Address::named(fmt::format("syncopate-{:016x}{:016x}", random_group(), random_group())));
  } catch (const SystemFailure& failure) {
    options.log.write(LogLevel::info, fmt::format("no shared memory: {}", failure.what()));
    return {};
  }
}

void require_protection(const GroupOptions& options, const socket::Address& source) {
  const bool has_secret = !base::crypto::read_secret(options.secret_file).empty();
  socket::require_guarded(source, has_secret);
  base::require(options.tls != "on" || has_secret,
                "SYNCOPATE_TLS=on needs the job's secret, from which its keys are made: name a file with at least 16 "
                "random bytes, the same on every rank, in SYNCOPATE_SECRET_FILE");
}

/// What came of the rendezvous, in this rank's eyes.
struct Met {
  std::vector<connect::PeerInfo> all;
  connect::Digest digest{};  ///< of all texts: handshakes succeed only between ranks that were told the same
};

Met meet(const GroupOptions& options, connect::rendezvous::Rendezvous& meeting, const connect::PeerInfo& mine) {
  const auto deadline = std::chrono::steady_clock::now() + *options.join_timeout;
  const connect::rendezvous::Member me{*options.rank, *options.size};
  const std::string secret = base::crypto::read_secret(options.secret_file);
  const std::string sealed = connect::seal(encode(mine), {me.rank, me.size}, secret);
  const auto texts = meeting.exchange(me, sealed, deadline);
  if (texts.at(static_cast<std::size_t>(me.rank)) != sealed)
    throw Unauthorized("somebody has replaced this rank's text at the rendezvous", {.rank = me.rank});
  Met met{.all = {}, .digest = base::crypto::digest_of(texts)};
  for (int rank = 0; rank < me.size; ++rank) {
    const std::string text = connect::unseal(texts[static_cast<std::size_t>(rank)], {rank, me.size}, secret);
    met.all.push_back(connect::decode_peer_info(text, rank));
    // Tests give ranks other host names; they run here all the same, so loopback reaches them.
    if (mine.host == socket::host_identity()) connect::require_reachable(mine, met.all.back(), rank);
  }
  const connect::PeerInfo& leader = met.all.front();
  base::require(leader.streams >= 1 && leader.streams <= 16 && leader.silence_ms >= connect::kShortestSilence.count(),
                "rank 0 wants {} streams and {} ms of silence; allowed: 1 to 16, and {} ms and more", leader.streams,
                leader.silence_ms, connect::kShortestSilence.count());
  return met;
}

/// Which ranks share memory with rank `me`.
std::vector<bool> neighbours(const std::vector<connect::PeerInfo>& all, std::size_t me) {
  const connect::PeerInfo& mine = all[me];
  std::vector<bool> near;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const connect::PeerInfo& other = all[rank];
    near.push_back(rank != me && all[0].transport != "tcp" && !mine.memory_socket.empty() &&
                   !other.memory_socket.empty() && mine.host == other.host && mine.owner == other.owner);
    base::require(near.back() || rank == me || all[0].transport != "shm",
                  "transport shm was asked for, but ranks {} and {} share no memory (another host, another user, or "
                  "their own transport is tcp); allowed here: auto, tcp",
                  me, rank);
  }
  return near;
}

/// More ranks on this host than cores that this one may use.
bool crowded(const std::vector<connect::PeerInfo>& all, const connect::PeerInfo& mine) {
  const auto ranks = std::count_if(all.begin(), all.end(), [&](const auto& other) { return other.host == mine.host; });
  return ranks > base::processors();
}

/// The group's kind of transport. Computed from what every rank knows, not from this rank's own links: the choice of
/// algorithms depends on it and has to be the same on all ranks.
std::string kind_of(const std::vector<connect::PeerInfo>& all) {
  const std::string& wanted = all[0].transport;
  std::map<std::pair<std::string, std::string>, std::size_t> ranks;  // that can share memory, by host and owner
  for (const connect::PeerInfo& rank : all)
    if (!rank.memory_socket.empty()) ++ranks[{rank.host, rank.owner}];
  std::size_t most = 0;
  for (const auto& [place, count] : ranks) most = std::max(most, count);
  if (wanted == "tcp" || (most < 2 && wanted != "shm")) return "tcp";
  return most == all.size() ? "shm" : "shm+tcp";
}

std::unique_ptr<connect::rendezvous::Rendezvous> rendezvous_of(const GroupOptions& options) {
  const std::string& place = options.rendezvous;
  if (*options.size == 1) return connect::rendezvous::in_memory(connect::rendezvous::make_board());
  if (place.starts_with(kFile)) return connect::rendezvous::in_folder(place.substr(kFile.size()));
  if (place.starts_with(kLocal))
    return connect::rendezvous::over_tcp({connect::rendezvous::local_meeting(place.substr(kLocal.size())),
                                          base::crypto::read_secret(options.secret_file), options.log});
  base::require(place.starts_with(kTcp),
                "rendezvous '{}' is unknown; allowed: tcp://host:port, file:///folder, local://name", place);
  const socket::Address address = socket::Address::resolve(place.substr(kTcp.size()));
  base::require(address.port() != 0, "rendezvous '{}' needs a port other than 0, the same for all ranks", place);
  const std::string secret = base::crypto::read_secret(options.secret_file);
  socket::require_guarded(address, !secret.empty());
  return connect::rendezvous::over_tcp(
      {address, secret, options.log, connect::encrypts(options.tls, address.is_public())});
}

/// How some of the ranks form a group of their own: numbered otherwise, else with the same options.
std::function<Endpoint(int, int, connect::rendezvous::Rendezvous&)> branch_of(const GroupOptions& options) {
  return [options](int place, int members, connect::rendezvous::Rendezvous& inner) {
    GroupOptions own = options;
    own.rank = place;
    own.size = members;
    return join(own, inner);
  };
}

connect::PeerInfo info_of(const GroupOptions& options, const std::string& host,
                          const std::vector<socket::Descriptor>& listeners, bool lends) {
  return {.version = std::string(version()),
          .address = socket::local_address(listeners[0]).text(),
          .host = host,
          .memory_socket = listeners.size() > 1 ? socket::local_address(listeners[1]).text().substr(1) : "",
          .lends = lends,
          .owner = socket::user_identity(),
          .group = random_group(),
          .streams = static_cast<std::uint32_t>(*options.streams),
          .checksum = *options.checksum,
          .transport = options.transport,
          .silence_ms = options.silence->count(),
          .has_cluster = !options.cluster.empty(),
          .tls = options.tls};
}

membership::ControlOptions control_options_of(const GroupOptions& options, const Met& met) {
  const std::vector<connect::PeerInfo>& all = met.all;
  const auto me = static_cast<std::size_t>(*options.rank);
  membership::ControlOptions made{.rank = *options.rank,
                                  .source = socket::Address::parse(all[me].address).with_port(0),
                                  .group = all[0].group,
                                  .secret = base::crypto::read_secret(options.secret_file),
                                  .meeting = met.digest,
                                  .tls = connect::agreed_tls(all),
                                  .streams = all[0].streams,
                                  .silence = std::chrono::milliseconds(all[0].silence_ms),
                                  .log = options.log};
  const std::vector<bool> near = neighbours(all, me);
  for (std::size_t other = 0; other < all.size(); ++other) {
    made.addresses.push_back(socket::Address::parse(all[other].address));
    made.memory_sockets.push_back(near[other] ? socket::Address::named(all[other].memory_socket) : socket::Address());
  }
  return made;
}

/// What links are made of.
struct LinkParts {
  std::shared_ptr<membership::TreeControl> control;
  std::shared_ptr<membership::Mailbox> mailbox;
  std::shared_ptr<shm::Heap> heap;
};

std::unique_ptr<Transport> links_of(const GroupOptions& options, const std::vector<connect::PeerInfo>& all,
                                    const LinkParts& parts) {
  const tcp::TransportOptions by_socket{.rank = *options.rank,
                                        .size = *options.size,
                                        .streams = all[0].streams,
                                        .rules = {.group = all[0].group, .epoch = 0, .checksum = all[0].checksum}};
  auto far = std::make_unique<tcp::TcpTransport>(by_socket, parts.control, parts.mailbox);
  if (kind_of(all) == "tcp") return far;
  const auto me = static_cast<std::size_t>(*options.rank);
  // Vectors lie in the group's memory on all ranks or on none: plans differ by it.
  const bool all_lend = std::ranges::all_of(all, &connect::PeerInfo::lends);
  const shm::ShmOptions by_memory{.rank = *options.rank,
                                  .near = neighbours(all, me),
                                  .crowded = crowded(all, all[me]),
                                  .heap = all_lend ? parts.heap : shm::Heap::of(0)};
  return std::make_unique<shm::ShmTransport>(by_memory, std::move(far), parts.control, parts.mailbox);
}

}  // namespace

Endpoint join(const GroupOptions& options, connect::rendezvous::Rendezvous& meeting, const std::string& host,
              bool blames) {
  const socket::Address source = own_address(options);
  if (*options.size > 1) require_protection(options, source);
  std::vector<socket::Descriptor> listeners;
  listeners.push_back(socket::listen_on(source));
  if (socket::Descriptor listener = listen_for_memory(options)) listeners.push_back(std::move(listener));
  const std::shared_ptr<shm::Heap> heap = make_heap(options);
  const auto deadline = std::chrono::steady_clock::now() + *options.join_timeout;
  const Met met = meet(options, meeting, info_of(options, host, listeners, heap != nullptr));
  const std::vector<connect::PeerInfo>& all = met.all;
  Endpoint endpoint{
      .rank = *options.rank, .size = *options.size, .kind = kind_of(all), .has_cluster = all[0].has_cluster};
  for (const connect::PeerInfo& rank : all) endpoint.hosts.push_back(rank.host);
  membership::ControlOptions control_options = control_options_of(options, met);
  control_options.blames = blames;
  endpoint.is_exposed = !control_options.tls && std::ranges::any_of(control_options.addresses, [](const auto& address) {
    return !address.loopback();
  });
  auto mailbox = std::make_shared<membership::Mailbox>();
  auto control = std::make_shared<membership::ControlThread>(std::move(control_options), std::move(listeners), mailbox);
  control->wait_joined(deadline);
  endpoint.control = control;
  endpoint.links =
      delayed(links_of(options, all, {control, mailbox, heap}), options.delay.value_or(std::chrono::microseconds{0}));
  endpoint.branch = branch_of(options);
  return endpoint;
}

Endpoint join_processes(const GroupOptions& options, const base::Environment& environment) {
  return join_processes(connect::resolve_launch(options, environment));
}

Endpoint join_processes(const connect::Launch& launch) {
  launch.options.log.write(LogLevel::info, launch.source);
  const auto meeting = rendezvous_of(launch.options);
  Endpoint endpoint = join(launch.options, *meeting, socket::host_identity(), launch.blames);
  if (endpoint.is_exposed && endpoint.rank == 0)
    launch.options.log.write(LogLevel::warning,
                             "connections beyond this host are not encrypted: who is on their way can read and change "
                             "what ranks send; SYNCOPATE_TLS=on on every rank prevents both");
  return endpoint;
}

}  // namespace syncopate::transport
