// Joining processes: listens, exchanges peer info, builds the control tree, and makes the links.
#include "transport/join.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/require.hpp"
#include "transport/connect/rendezvous/rendezvous.hpp"
#include "transport/delay.hpp"
#include "transport/endpoint.hpp"
#include "transport/inproc/control.hpp"
#include "transport/inproc/transport.hpp"
#include "transport/meet.hpp"
#include "transport/membership/control_thread.hpp"
#include "transport/shm/fence.hpp"
#include "transport/shm/region.hpp"

namespace syncopate::transport {

namespace {

constexpr std::string_view kTcp = "tcp://", kFile = "file://", kLocal = "local://";

/// The address this rank listens on and sends from: the given one, or the one that faces the rendezvous.
socket::Address own_address(const GroupOptions& options) {
  if (!options.interface.empty()) return socket::interface_address(options.interface);
  if (options.rendezvous.starts_with(kTcp))
    if (const socket::Address meeting = socket::Address::resolve(options.rendezvous.substr(kTcp.size()));
        !meeting.loopback())
      return socket::source_toward(meeting);
  return socket::loopback_address();
}

/// This rank's heap; null if this process may not map that many addresses.
std::shared_ptr<shm::Heap> make_heap(const GroupOptions& options) try {
  auto heap = *options.size > 1 ? shm::Heap::make() : nullptr;
  return heap && heap->bytes() > 0 ? heap : nullptr;
} catch (const SystemFailure& failure) {
  options.log.write(LogLevel::info, fmt::format("other ranks cannot reach this rank's memory: {}", failure.what()));
  return nullptr;
}

/// A listener for ranks that share this one's memory; empty if the system has no shared memory.
socket::Descriptor listen_for_memory(const GroupOptions& options) {
  if (options.transport == TransportChoice::tcp || *options.size == 1) return {};
  try {
    if (!shm::register_for_membarrier()) throw SystemFailure("the system has no barriers between processes");
    static_cast<void>(shm::Region::make());
    const std::uint64_t one = random_name(socket::kernel()), two = random_name(socket::kernel());
    return socket::listen_on(socket::Address::named(fmt::format("syncopate-{:016x}{:016x}", one, two)));
  } catch (const SystemFailure& failure) {
    options.log.write(LogLevel::info, fmt::format("no shared memory: {}", failure.what()));
    return {};
  }
}

/// As many descriptors as a rank needs to connect to its neighbours. Held until the ranks know each other: a rank that
/// lacks them fails before the others wait for it.
std::vector<socket::Descriptor> reserve(const socket::Address& address, int rank, int size, socket::System& system) {
  constexpr std::size_t kPollers = 2;
  std::vector<socket::Descriptor> held;
  if (size > 1)
    while (held.size() < kPollers + membership::neighbours_of(rank, size).size())
      held.push_back(socket::open_socket(address, system));
  return held;
}

void require_protection(const GroupOptions& options, const socket::Address& source, bool has_secret) {
  socket::require_guarded(source, has_secret);
  base::require(options.tls != TlsChoice::on || has_secret,
                "SYNCOPATE_TLS=on needs the job's secret, from which its keys are made: name a file with at least 16 "
                "random bytes, the same on every rank, in SYNCOPATE_SECRET_FILE");
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
      {address, secret, options.log, connect::encrypts(*options.tls, address.is_public())});
}

/// Lets some of the ranks form a sub-group: with other numbers, and otherwise the same options.
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
              std::optional<BlameDescriptor> blame) {
  const socket::Address source = own_address(options);
  const JoiningRank me{options, base::crypto::read_secret(options.secret_file), socket::kernel(), host,
                       socket::user_identity()};
  if (*options.size > 1) require_protection(options, source, !me.secret.empty());
  std::vector<socket::Descriptor> listeners;
  listeners.push_back(socket::listen_on(source, me.system));
  if (socket::Descriptor listener = listen_for_memory(options)) listeners.push_back(std::move(listener));
  const std::shared_ptr<shm::Heap> heap = make_heap(options);
  const base::Time deadline = me.system.now() + *options.join_timeout;
  auto held = reserve(source, *options.rank, *options.size, me.system);
  const Meeting result = meet(me, meeting, info_of(me, listeners, heap != nullptr), deadline);
  held.clear();
  const std::vector<connect::PeerInfo>& all = result.all;
  Endpoint endpoint{
      .rank = *options.rank, .size = *options.size, .kind = kind_of(all), .has_cluster = all[0].has_cluster};
  for (const connect::PeerInfo& rank : all) endpoint.hosts.push_back(rank.host);
  membership::ControlOptions control_options = control_options_of(me, result, deadline);
  control_options.blame = blame;
  endpoint.is_exposed = !control_options.tls && std::ranges::any_of(control_options.addresses, [](const auto& address) {
    return !address.loopback();
  });
  auto mailbox = std::make_shared<membership::Mailbox>(me.system);
  auto control = std::make_shared<membership::ControlThread>(std::move(control_options), std::move(listeners), mailbox);
  control->wait_joined();
  endpoint.control = control;
  endpoint.links =
      delayed(links_of(me, all, {control, mailbox, heap}), options.delay.value_or(std::chrono::microseconds{0}));
  endpoint.branch = branch_of(options);
  return endpoint;
}

Endpoint join_processes(const GroupOptions& options, const base::Environment& environment) {
  return join_processes(connect::resolve_launch(options, environment));
}

Endpoint join_processes(const connect::Launch& launch) {
  launch.options.log.write(LogLevel::info, launch.source);
  const auto meeting = rendezvous_of(launch.options);
  Endpoint endpoint = join(launch.options, *meeting, socket::host_identity(), launch.blame);
  if (endpoint.is_exposed && endpoint.rank == 0 &&
      launch.options.tls == TlsChoice::automatic)  // "off" is the user's choice
    launch.options.log.write(LogLevel::warning,
                             "traffic between hosts is not encrypted; set SYNCOPATE_TLS=on on every rank");
  return endpoint;
}

namespace {

/// Rank 0 of the sub-group makes the hub and sends its number; the hub is kept until every member has fetched it.
std::shared_ptr<inproc::Hub> branch_of(inproc::Hub& parent, const connect::rendezvous::Member& me,
                                       base::Duration patience, connect::rendezvous::Rendezvous& meeting) {
  std::string text;
  if (me.rank == 0) {
    const base::Lock lock(parent.mutex);
    text = std::to_string(parent.next_branch);
    parent.branches[parent.next_branch++] = {std::make_shared<inproc::Hub>(me.size), me.size};
  }
  const auto texts = meeting.exchange(me, text, std::chrono::steady_clock::now() + patience);
  const base::Lock lock(parent.mutex);
  const auto found = parent.branches.find(std::stoull(texts.at(0)));
  std::shared_ptr<inproc::Hub> hub = found->second.first;
  if (--found->second.second == 0) parent.branches.erase(found);
  return hub;
}

struct ThreadOptions {
  base::Duration patience, delay;
};

Endpoint endpoint_of(const std::shared_ptr<inproc::Hub>& hub, const connect::rendezvous::Member& me,
                     const ThreadOptions& options) {
  auto control = std::make_shared<inproc::InprocControl>(hub, me.rank);
  return {.rank = me.rank,
          .size = me.size,
          .kind = "inproc",
          .hosts = std::vector<std::string>(static_cast<std::size_t>(me.size), "this process"),
          .control = control,
          .links = delayed(std::make_unique<inproc::InprocTransport>(hub, control, me.rank), options.delay),
          .branch = [hub, options](int rank, int size, connect::rendezvous::Rendezvous& meeting) {
            const connect::rendezvous::Member member{rank, size};
            return endpoint_of(branch_of(*hub, member, options.patience, meeting), member, options);
          }};
}

}  // namespace

std::vector<Endpoint> join_threads(int size, const GroupOptions& options) {
  auto hub = std::make_shared<inproc::Hub>(size);
  const ThreadOptions own{std::min(options.join_timeout.value_or(connect::kJoinTimeout), connect::kLongestBound),
                          options.delay.value_or(std::chrono::microseconds{0})};
  std::vector<Endpoint> endpoints;
  for (int rank = 0; rank < size; ++rank) endpoints.push_back(endpoint_of(hub, {rank, size}, own));
  return endpoints;
}

}  // namespace syncopate::transport
