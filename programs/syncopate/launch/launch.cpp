// Launching a job: N ranks of one program on this machine, on the hosts of a lab, or on other hosts by ssh.
#include "launch/launch.hpp"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <optional>

#include "launch/port.hpp"
#include "launch/runtime_folder.hpp"
#include "launch/servers.hpp"
#include "syncopate/error.hpp"

namespace syncopate::tools::launch {
namespace {

/// Used where no port can be reserved: in a lab every port is free; on other hosts this is a likely free port.
constexpr rlim_t kDescriptorsOfAProgram = 4, kOwnDescriptors = 64;
constexpr int kLabPort = 29'500, kLabStorePort = 29'501;
constexpr int kFirstRemotePort = 20'000, kRemotePorts = 10'000;  // below the range that systems hand out by themselves

struct ProcessSlot {
  std::size_t place = 0;  ///< index into JobOptions::hosts, or the lab's host
  int local_rank = 0;
};

ProcessSlot slot_of(const JobOptions& options, int rank) {
  if (options.lab != nullptr)
    return {.place = static_cast<std::size_t>(rank / options.ranks_per_host),
            .local_rank = rank % options.ranks_per_host};
  if (options.hosts.empty()) return {.place = 0, .local_rank = rank};
  ProcessSlot slot{.place = 0, .local_rank = rank};
  while (slot.local_rank >= options.hosts[slot.place].slots) slot.local_rank -= options.hosts[slot.place++].slots;
  return slot;
}

void check(const JobOptions& options) {
  if (options.program.empty()) throw Misuse("no program given: run -n N [OPTIONS] -- PROGRAM ARGS…");
  if (options.ranks < 1) throw Misuse(fmt::format("{} ranks; allowed: 1 or more", options.ranks));
  int slots = 0;
  for (const Place& place : options.hosts) slots += place.slots;
  if (!options.hosts.empty() && options.ranks > slots)
    throw Misuse(fmt::format("{} ranks do not fit on hosts for {}; write HOST:RANKS", options.ranks, slots));
  if (options.servers > 0 && !options.hosts.empty())
    throw Misuse(
        "--servers with --hosts; allowed: on this machine, or with --lab; on other hosts start `syncopate server` "
        "by hand, and ranks with SYNCOPATE_SERVERS");
  if (options.replicas > 0 && options.servers < 2)
    throw Misuse("--replicas needs --servers 2 or more: the next server keeps the copy");
  if (options.own_servers && (options.servers < 1 || options.replicas > 0 || !options.snapshots.empty()))
    throw Misuse("--own-servers needs --servers, and excludes --replicas and --snapshots");
  if (!options.snapshots.empty() && (options.servers < 1 || options.replicas > 0))
    throw Misuse("--snapshots needs --servers and excludes --replicas");
  if (options.ranks_per_host < 1)
    throw Misuse(fmt::format("{} ranks per host; allowed: 1 or more", options.ranks_per_host));
  if (options.lab != nullptr && lab_hosts(options.ranks, options.ranks_per_host) > options.lab->options().hosts)
    throw Misuse(fmt::format("{} ranks do not fit in a lab of {} hosts, {} on each", options.ranks,
                             options.lab->options().hosts, options.ranks_per_host));
}

struct Endpoint {
  std::string address;  ///< numeric
  int port = 0;
};

/// A free port at this address, or a likely free one where `port` cannot reserve it.
Endpoint endpoint_on(const std::string& address, std::optional<ReservedPort>& port) {
  if (is_loopback(address)) {
    port.emplace();
    return {.address = port->address(), .port = port->number()};
  }
  unsigned number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) process::fail("no random bytes");
  return {.address = address, .port = kFirstRemotePort + static_cast<int>(number % kRemotePorts)};
}

std::string rendezvous_at(const Endpoint& endpoint) {
  return fmt::format("tcp://{}:{}", bracketed(endpoint.address), endpoint.port);
}

/// Number of ranks on this rank's host.
int local_size(const JobOptions& options, int rank) {
  int count = 0;
  for (int other = 0; other < options.ranks; ++other)
    if (slot_of(options, other).place == slot_of(options, rank).place) ++count;
  return count;
}

/// Our own variables that a rank on another host would not see: everything SYNCOPATE_* of this process.
std::map<std::string, std::string> inherited_settings() {
  std::map<std::string, std::string> settings;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view line = *entry;
    const auto equals = line.find('=');
    if (line.starts_with("SYNCOPATE_") && !line.starts_with("SYNCOPATE_SSH="))
      settings.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return settings;
}

bool is_set(const JobOptions& options, const char* variable) {
  return options.environment.contains(variable) || std::getenv(variable) != nullptr;
}

std::map<std::string, std::string> rank_environment(const JobOptions& options, int rank) {
  std::map<std::string, std::string> environment = options.environment;
  environment["SYNCOPATE_RANK"] = fmt::format("{}", rank);
  environment["SYNCOPATE_SIZE"] = fmt::format("{}", options.ranks);
  environment["SYNCOPATE_LOCAL_RANK"] = fmt::format("{}", slot_of(options, rank).local_rank);
  environment["SYNCOPATE_RENDEZVOUS"] = options.rendezvous;
  if (!options.transport.empty()) environment["SYNCOPATE_TRANSPORT"] = options.transport;
  if (!options.tls.empty()) environment["SYNCOPATE_TLS"] = options.tls;
  if (!options.interface.empty()) environment["SYNCOPATE_INTERFACE"] = options.interface;
  if (options.supervise.progress && rank == 0) environment["SYNCOPATE_PROGRESS"] = "1";
  // torch.distributed.init_process_group reads these, MASTER_ADDR and MASTER_PORT; --env has precedence.
  environment.try_emplace("RANK", environment["SYNCOPATE_RANK"]);
  environment.try_emplace("WORLD_SIZE", environment["SYNCOPATE_SIZE"]);
  environment.try_emplace("LOCAL_RANK", environment["SYNCOPATE_LOCAL_RANK"]);
  environment.try_emplace("LOCAL_WORLD_SIZE", fmt::format("{}", local_size(options, rank)));
  return environment;
}

process::Program local_program(const JobOptions& options, int rank, const SecretFile& secret) {
  process::Program program{
      .argv = options.program, .environment = rank_environment(options, rank), .input = {}, .blames = true};
  program.environment["SYNCOPATE_SECRET_FILE"] = secret.path();
  if (options.lab == nullptr) return program;
  program.argv[0] = process::resolve_program(program.argv[0]);  // here, where a missing program is a Misuse of ours
  const auto prefix = options.lab->exec_prefix(static_cast<int>(slot_of(options, rank).place));
  program.argv.insert(program.argv.begin(), prefix.begin(), prefix.end());
  return program;
}

process::Program remote_program(const JobOptions& options, int rank, const SecretFile& secret) {
  const Place& place = options.hosts[slot_of(options, rank).place];
  process::Program program{.argv = options.program, .environment = inherited_settings(), .input = {}};
  for (const auto& [name, value] : rank_environment(options, rank)) program.environment[name] = value;
  program.environment.erase("SYNCOPATE_SECRET_FILE");
  program.environment.erase("SYNCOPATE_BLAME_FD");  // of this process, if another `run` started it
  if (const std::string address = address_of(place); options.interface.empty() && !is_loopback(address))
    program.environment["SYNCOPATE_INTERFACE"] = address;
  return over_ssh(place, program, secret.text());
}

}  // namespace

job::End run_job(const JobOptions& given, const job::LineSink& sink) {
  check(given);
  JobOptions options = given;
  std::optional<ReservedPort> rendezvous_port, store_port;
  Endpoint store;  // of torch.distributed
  if (options.lab != nullptr) {
    if (options.interface.empty()) options.interface = "eth0";
    if (options.tls.empty() && !is_set(options, "SYNCOPATE_TLS")) options.tls = "off";  // no host but this one
    store = {.address = options.lab->address(0), .port = kLabStorePort};
    if (options.rendezvous.empty())
      options.rendezvous = rendezvous_at({.address = options.lab->address(0), .port = kLabPort});
  } else {
    const std::string address = options.hosts.empty() ? "127.0.0.1" : address_of(options.hosts[0]);
    if (options.rendezvous.empty())
      options.rendezvous = rendezvous_at(endpoint_on(address, rendezvous_port));
    else if (options.hosts.empty())
      require_free_port(options.rendezvous);
    do store = endpoint_on(address, store_port);
    while (rendezvous_at(store) == options.rendezvous);
  }
  options.environment.try_emplace("MASTER_ADDR", store.address);
  options.environment.try_emplace("MASTER_PORT", fmt::format("{}", store.port));
  const SecretFile secret;
  options.supervise.files.push_back(secret.path());
  const Servers servers(options, secret);
  options.supervise.others_go_on = options.servers > 0;
  std::vector<process::Program> programs;
  for (int rank = 0; rank < options.ranks; ++rank)
    programs.push_back(options.hosts.empty() ? local_program(options, rank, secret)
                                             : remote_program(options, rank, secret));
  for (int rank = 0; rank < options.ranks && options.servers > 0; ++rank)
    for (const auto& [name, value] : servers.environment(static_cast<int>(slot_of(options, rank).place)))
      programs[static_cast<std::size_t>(rank)].environment[name] = value;
  for (process::Program& server : servers.programs()) programs.push_back(std::move(server));
  const rlim_t before = process::raise_descriptor_limit(kOwnDescriptors + kDescriptorsOfAProgram * programs.size());
  for (process::Program& program : programs) program.descriptors = before;
  return job::supervise(programs, options.supervise, sink);
}

}  // namespace syncopate::tools::launch
