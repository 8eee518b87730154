// Joining over TCP: listen, meet, build the control tree, and hand out the endpoint.
#include "transport/tcp/join.hpp"

#include <fmt/format.h>

#include <random>

#include "base/require.hpp"
#include "syncopate/version.hpp"
#include "transport/tcp/introduction.hpp"
#include "transport/tcp/transport.hpp"

namespace syncopate::transport::tcp {

namespace {

constexpr std::string_view kTcp = "tcp://", kFile = "file://";

std::uint64_t random_group() {
  std::random_device source;
  return (static_cast<std::uint64_t>(source()) << 32) | source();
}

/// The address this rank listens on and sends from: as told, or the one that faces the rendezvous.
Address own_address(const GroupOptions& options) {
  if (!options.interface.empty()) return interface_address(options.interface);
  if (options.rendezvous.starts_with(kTcp))
    if (const Address meeting = Address::resolve(options.rendezvous.substr(kTcp.size())); !meeting.loopback())
      return source_toward(meeting);
  return interface_address("127.0.0.1");
}

struct Met {
  Introduction leader;  ///< rank 0's, whose settings hold
  std::vector<Address> addresses;
  std::vector<std::string> hosts;
};

Met meet(const GroupOptions& options, rendezvous::Rendezvous& meeting, const Introduction& mine) {
  const auto deadline = std::chrono::steady_clock::now() + options.join_timeout;
  const auto texts = meeting.exchange({*options.rank, *options.size}, encode(mine), deadline);
  Met met;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    const Introduction introduction = decode_introduction(texts[rank], static_cast<int>(rank));
    require_reachable(mine, introduction, static_cast<int>(rank));
    if (rank == 0) met.leader = introduction;
    met.addresses.push_back(Address::parse(introduction.address));
    met.hosts.push_back(introduction.host);
  }
  base::require(met.leader.streams >= 1 && met.leader.streams <= 16 && met.leader.silence_ms > 0,
                "rank 0 wants {} streams and {} ms of silence; allowed: 1 to 16, and more than 0", met.leader.streams,
                met.leader.silence_ms);
  return met;
}

std::unique_ptr<rendezvous::Rendezvous> rendezvous_of(const GroupOptions& options) {
  const std::string& place = options.rendezvous;
  if (*options.size == 1) return rendezvous::in_memory(rendezvous::make_board());
  if (place.starts_with(kFile)) return rendezvous::in_folder(place.substr(kFile.size()));
  base::require(place.starts_with(kTcp), "rendezvous '{}' is unknown; allowed: tcp://host:port, file:///folder", place);
  const Address address = Address::resolve(place.substr(kTcp.size()));
  base::require(address.port() != 0, "rendezvous '{}' needs a port other than 0, the same for all ranks", place);
  const std::string secret = read_secret(options.secret_file);
  require_guarded(address, !secret.empty());
  return rendezvous::over_tcp({address, secret, options.log});
}

}  // namespace

Endpoint join(const GroupOptions& options, rendezvous::Rendezvous& meeting) {
  const int rank = *options.rank, size = *options.size;
  const std::string secret = read_secret(options.secret_file);
  const Address source = own_address(options);
  if (size > 1) require_guarded(source, !secret.empty());
  Descriptor listener = listen_on(source);
  const Introduction mine{.version = std::string(version()),
                          .address = local_address(listener).text(),
                          .host = host_identity(),
                          .group = random_group(),
                          .streams = static_cast<std::uint32_t>(options.streams),
                          .checksum = options.checksum,
                          .silence_ms = options.silence.count()};
  const auto deadline = std::chrono::steady_clock::now() + options.join_timeout;
  Met met = meet(options, meeting, mine);
  const Introduction& leader = met.leader;
  auto mailbox = std::make_shared<Mailbox>();
  auto control = std::make_shared<TcpControl>(ControlOptions{.rank = rank,
                                                             .addresses = std::move(met.addresses),
                                                             .source = source,
                                                             .group = leader.group,
                                                             .secret = secret,
                                                             .streams = leader.streams,
                                                             .silence = std::chrono::milliseconds(leader.silence_ms),
                                                             .log = options.log},
                                              std::move(listener), mailbox);
  control->wait_joined(deadline);
  const TransportOptions links{.rank = rank,
                               .size = size,
                               .streams = leader.streams,
                               .rules = {.group = leader.group, .epoch = 0, .checksum = leader.checksum}};
  return {.rank = rank,
          .size = size,
          .kind = "tcp",
          .hosts = std::move(met.hosts),
          .control = control,
          .links = std::make_unique<TcpTransport>(links, control, mailbox)};
}

}  // namespace syncopate::transport::tcp

namespace syncopate::transport {

Endpoint join_tcp(const GroupOptions& options, const base::Environment& environment) {
  const Launch launch = resolve_launch(options, environment);
  options.log.write(LogLevel::info, launch.source);
  const auto meeting = tcp::rendezvous_of(launch.options);
  return tcp::join(launch.options, *meeting);
}

}  // namespace syncopate::transport
