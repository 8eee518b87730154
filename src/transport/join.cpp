// Joining over TCP: listen, meet, build the control tree, and hand out the endpoint.
#include "transport/join.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>

#include "base/require.hpp"
#include "syncopate/version.hpp"
#include "transport/connect/peer_info.hpp"
#include "transport/delay.hpp"
#include "transport/shm/membarrier.hpp"
#include "transport/shm/transport.hpp"

namespace syncopate::transport {

namespace {

constexpr std::string_view kTcp = "tcp://", kFile = "file://";

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

/// A listener for ranks that share this one's memory; none where the system has no such memory.
socket::Descriptor listen_for_neighbours(const GroupOptions& options) {
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

std::vector<connect::PeerInfo> meet(const GroupOptions& options, connect::rendezvous::Rendezvous& meeting,
                                    const connect::PeerInfo& mine) {
  const auto deadline = std::chrono::steady_clock::now() + *options.join_timeout;
  const auto texts = meeting.exchange({*options.rank, *options.size}, encode(mine), deadline);
  std::vector<connect::PeerInfo> all;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    all.push_back(connect::decode_peer_info(texts[rank], static_cast<int>(rank)));
    // Ranks that go by other names of hosts are of this one all the same.
    if (mine.host == socket::host_identity()) connect::require_reachable(mine, all.back(), static_cast<int>(rank));
  }
  const connect::PeerInfo& leader = all.front();
  base::require(leader.streams >= 1 && leader.streams <= 16 && leader.silence_ms > 0,
                "rank 0 wants {} streams and {} ms of silence; allowed: 1 to 16, and more than 0", leader.streams,
                leader.silence_ms);
  return all;
}

/// Which ranks share memory with rank `me`.
std::vector<bool> neighbours(const std::vector<connect::PeerInfo>& all, std::size_t me) {
  const connect::PeerInfo& mine = all[me];
  std::vector<bool> near;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const connect::PeerInfo& other = all[rank];
    near.push_back(rank != me && all[0].transport != "tcp" && !mine.door.empty() && !other.door.empty() &&
                   mine.host == other.host && mine.owner == other.owner);
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
  cpu_set_t allowed;
  return ::sched_getaffinity(0, sizeof allowed, &allowed) == 0 && ranks > CPU_COUNT(&allowed);
}

/// The same on every rank, for costs follow it: what all share, and not what this one does.
std::string kind_of(const std::vector<connect::PeerInfo>& all) {
  const std::string& wanted = all[0].transport;
  std::map<std::pair<std::string, std::string>, std::size_t> ranks;  // with a door, by host and owner
  for (const connect::PeerInfo& rank : all)
    if (!rank.door.empty()) ++ranks[{rank.host, rank.owner}];
  std::size_t most = 0;
  for (const auto& [place, count] : ranks) most = std::max(most, count);
  if (wanted == "tcp" || (most < 2 && wanted != "shm")) return "tcp";
  return most == all.size() ? "shm" : "shm+tcp";
}

std::unique_ptr<connect::rendezvous::Rendezvous> rendezvous_of(const GroupOptions& options) {
  const std::string& place = options.rendezvous;
  if (*options.size == 1) return connect::rendezvous::in_memory(connect::rendezvous::make_board());
  if (place.starts_with(kFile)) return connect::rendezvous::in_folder(place.substr(kFile.size()));
  base::require(place.starts_with(kTcp), "rendezvous '{}' is unknown; allowed: tcp://host:port, file:///folder", place);
  const socket::Address address = socket::Address::resolve(place.substr(kTcp.size()));
  base::require(address.port() != 0, "rendezvous '{}' needs a port other than 0, the same for all ranks", place);
  const std::string secret = connect::read_secret(options.secret_file);
  socket::require_guarded(address, !secret.empty());
  return connect::rendezvous::over_tcp({address, secret, options.log});
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

}  // namespace

Endpoint join(const GroupOptions& options, connect::rendezvous::Rendezvous& meeting, const std::string& host,
              bool blames) {
  const int rank = *options.rank, size = *options.size;
  const std::string secret = connect::read_secret(options.secret_file);
  const socket::Address source = own_address(options);
  if (size > 1) socket::require_guarded(source, !secret.empty());
  std::vector<socket::Descriptor> listeners;
  listeners.push_back(socket::listen_on(source));
  if (socket::Descriptor door = listen_for_neighbours(options)) listeners.push_back(std::move(door));
  const connect::PeerInfo mine{.version = std::string(version()),
                               .address = socket::local_address(listeners[0]).text(),
                               .host = host,
                               .door = listeners.size() > 1 ? socket::local_address(listeners[1]).text().substr(1) : "",
                               .owner = socket::user_identity(),
                               .group = random_group(),
                               .streams = static_cast<std::uint32_t>(*options.streams),
                               .checksum = *options.checksum,
                               .transport = options.transport,
                               .silence_ms = options.silence->count(),
                               .has_cluster = !options.cluster.empty()};
  const auto deadline = std::chrono::steady_clock::now() + *options.join_timeout;
  const std::vector<connect::PeerInfo> all = meet(options, meeting, mine);
  const connect::PeerInfo& leader = all.front();
  const std::vector<bool> near = neighbours(all, static_cast<std::size_t>(rank));
  membership::ControlOptions words{.rank = rank,
                                   .source = source,
                                   .group = leader.group,
                                   .secret = secret,
                                   .streams = leader.streams,
                                   .silence = std::chrono::milliseconds(leader.silence_ms),
                                   .log = options.log,
                                   .blames = blames};
  Endpoint endpoint{.rank = rank, .size = size, .kind = kind_of(all), .has_cluster = leader.has_cluster};
  for (std::size_t other = 0; other < all.size(); ++other) {
    words.addresses.push_back(socket::Address::parse(all[other].address));
    words.doors.push_back(near[other] ? socket::Address::named(all[other].door) : socket::Address());
    endpoint.hosts.push_back(all[other].host);
  }
  auto mailbox = std::make_shared<membership::Mailbox>();
  auto control = std::make_shared<membership::TreeControl>(std::move(words), std::move(listeners), mailbox);
  control->wait_joined(deadline);
  const tcp::TransportOptions links{.rank = rank,
                                    .size = size,
                                    .streams = leader.streams,
                                    .rules = {.group = leader.group, .epoch = 0, .checksum = leader.checksum}};
  endpoint.control = control;
  auto far = std::make_unique<tcp::TcpTransport>(links, control, mailbox);
  if (endpoint.kind == "tcp")
    endpoint.links = std::move(far);
  else
    endpoint.links = std::make_unique<shm::ShmTransport>(
        shm::ShmOptions{.rank = rank, .near = near, .crowded = crowded(all, mine)}, std::move(far), control, mailbox);
  endpoint.links = delayed(std::move(endpoint.links), options.delay.value_or(std::chrono::microseconds{0}));
  endpoint.branch = branch_of(options);
  return endpoint;
}

}  // namespace syncopate::transport

namespace syncopate::transport {

Endpoint join_processes(const GroupOptions& options, const base::Environment& environment) {
  return join_processes(connect::resolve_launch(options, environment));
}

Endpoint join_processes(const connect::Launch& launch) {
  launch.options.log.write(LogLevel::info, launch.source);
  const auto meeting = rendezvous_of(launch.options);
  return join(launch.options, *meeting, socket::host_identity(), launch.blames);
}

}  // namespace syncopate::transport
