// Launch: rank, size and rendezvous of this process, from options, then from its launcher's variables.
#include "transport/connect/launch.hpp"

#include <xxhash.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

#include "base/require.hpp"

namespace syncopate::transport::connect {

namespace {

using base::require;
using std::chrono::milliseconds;

constexpr long kMostRanks = 1 << 20;
constexpr long kMostSpinUs = 60'000'000, kMostDelayUs = 1'000'000;

using Meeting = std::string (*)(const base::Environment&, int size);

/// A name that only the ranks of one job share, derived from the launcher's name of the job.
std::string local_meeting(std::string_view starter, std::string_view job) {
  return fmt::format("local://{}-{:016x}", starter, XXH3_64bits(job.data(), job.size()));
}

std::string openmpi_meeting(const base::Environment& environment, int size) {
  const std::string job =
      environment.text("PMIX_NAMESPACE").value_or("") + ' ' + environment.text("OMPI_MCA_orte_hnp_uri").value_or("");
  const bool is_one_host = environment.integer("OMPI_COMM_WORLD_LOCAL_SIZE", 1, kMostRanks) == size;
  return is_one_host && job.size() > 1 ? local_meeting("openmpi", job) : "";
}

/// MPICH does not name the job, but all its ranks on a host have a socket to one process.
std::string mpich_meeting(const base::Environment& environment, int size) {
  const auto socket = environment.integer("PMI_FD", 0, std::numeric_limits<int>::max());
  const bool is_one_host = environment.integer("MPI_LOCALNRANKS", 1, kMostRanks) == size;
  return is_one_host && socket ? fmt::format("local://fd:{}", *socket) : "";
}

std::string slurm_meeting(const base::Environment& environment, int /*size*/) {
  const auto job = environment.text("SLURM_JOB_ID"), step = environment.text("SLURM_STEP_ID");
  const bool is_one_host = environment.text("SLURM_STEP_NUM_NODES") == "1";
  return is_one_host && job && step ? local_meeting("slurm", *job + '.' + *step) : "";
}

std::string no_meeting(const base::Environment& /*environment*/, int /*size*/) { return {}; }

struct Starter {
  const char* name;
  const char* rank;
  const char* size;
  const char* sign = "";         ///< variable that must also be set: other launchers set the same rank and size
  Meeting meeting = no_meeting;  ///< the rendezvous if all ranks are on one host; empty if not, or if unknown
  const char* pass = "";         ///< how its ranks receive variables
};
/// In order of nesting: an inner launcher stands before an outer one, for example mpirun inside a Slurm job.
constexpr Starter kStarters[] = {
    {.name = "SYNCOPATE_RANK/SYNCOPATE_SIZE", .rank = "SYNCOPATE_RANK", .size = "SYNCOPATE_SIZE"},
    {.name = "torchrun", .rank = "RANK", .size = "WORLD_SIZE"},
    {.name = "Open MPI",
     .rank = "OMPI_COMM_WORLD_RANK",
     .size = "OMPI_COMM_WORLD_SIZE",
     .meeting = openmpi_meeting,
     .pass = " by mpirun -x NAME=VALUE"},
    {.name = "MPICH",
     .rank = "PMI_RANK",
     .size = "PMI_SIZE",
     .sign = "MPI_LOCALNRANKS",
     .meeting = mpich_meeting,
     .pass = " by mpirun -genv NAME VALUE"},
    {.name = "Slurm",
     .rank = "SLURM_PROCID",
     .size = "SLURM_NTASKS",
     .meeting = slurm_meeting,
     .pass = " by export before srun"},
    {.name = "PMI", .rank = "PMI_RANK", .size = "PMI_SIZE"}};

constexpr const char* kNothing = "nothing: one rank";

struct LaunchedPlace {
  int rank = 0;
  int size = 1;
  std::string source = kNothing;
  const Starter* starter = nullptr;
};

void check(const LaunchedPlace& place, std::string_view rank_name, std::string_view size_name) {
  require(place.size >= 1 && place.size <= kMostRanks, "{}={} is out of range; allowed: 1 to {}", size_name, place.size,
          kMostRanks);
  require(place.rank >= 0 && place.rank < place.size, "{}={} does not fit {}={}; allowed: 0 to {}", rank_name,
          place.rank, size_name, place.size, place.size - 1);
}

std::optional<LaunchedPlace> place_from(const Starter& starter, const base::Environment& environment) {
  if (*starter.sign != '\0' && !environment.text(starter.sign)) return std::nullopt;
  const auto rank = environment.integer(starter.rank, 0, kMostRanks);
  const auto size = environment.integer(starter.size, 1, kMostRanks);
  // SLURM_NTASKS is also set in a batch script's shell; for every launcher a rank without a size is an error.
  if (!rank && (!size || starter.rank != std::string_view("SYNCOPATE_RANK"))) return std::nullopt;
  require(rank && size, "{} is set without {}; set both or none", rank ? starter.rank : starter.size,
          rank ? starter.size : starter.rank);
  const LaunchedPlace place{static_cast<int>(*rank), static_cast<int>(*size), starter.name, &starter};
  check(place, starter.rank, starter.size);
  return place;
}

LaunchedPlace place_of(const GroupOptions& options, const base::Environment& environment) {
  if (options.rank || options.size) {
    require(options.rank && options.size, "the option {} is set without {}; set both or none",
            options.rank ? "rank" : "size", options.rank ? "size" : "rank");
    const LaunchedPlace place{*options.rank, *options.size, "options", nullptr};
    check(place, "option rank", "option size");
    return place;
  }
  for (const Starter& starter : kStarters)
    if (auto place = place_from(starter, environment)) return *place;
  return {};
}

/// torchrun's agent listens on MASTER_PORT when it serves the store; the rendezvous then uses the next port.
std::string torchrun_rendezvous(const base::Environment& environment) {
  const auto host = environment.text("MASTER_ADDR");
  const auto port = environment.integer("MASTER_PORT", 1, 65534);
  if (!host || !port) return {};
  const bool taken = environment.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  const bool v6 = host->find(':') != std::string::npos && host->front() != '[';
  return fmt::format(fmt::runtime(v6 ? "tcp://[{}]:{}" : "tcp://{}:{}"), *host, *port + (taken ? 1 : 0));
}

constexpr const char* kTorchrun = "MASTER_ADDR and MASTER_PORT";

/// Returns the source of the setting, for the log.
std::string resolve_rendezvous(GroupOptions& options, const LaunchedPlace& place,
                               const base::Environment& environment) {
  if (!options.rendezvous.empty()) return "options";
  if (const auto given = environment.text("SYNCOPATE_RENDEZVOUS")) {
    options.rendezvous = *given;
    return "SYNCOPATE_RENDEZVOUS";
  }
  options.rendezvous = torchrun_rendezvous(environment);
  if (!options.rendezvous.empty()) return kTorchrun;
  if (place.starter == nullptr || place.size == 1) return {};
  options.rendezvous = place.starter->meeting(environment, place.size);
  return fmt::format("{}: all ranks are on this host", place.source);
}

void resolve_time(std::optional<milliseconds>& option, const char* name, milliseconds standard,
                  const base::Environment& environment) {
  const auto found = environment.integer(name, 1, std::numeric_limits<int>::max());
  if (!option) option = found ? milliseconds(*found) : standard;
  require(option->count() > 0, "timeouts and silence must be positive; one is {} ms", option->count());
  option = std::min(*option, kLongestBound);
}

void resolve_rest(GroupOptions& options, const base::Environment& environment) {
  if (!options.log.level) options.log.level = log_level_named(environment.text("SYNCOPATE_LOG").value_or("warning"));
  if (options.interface.empty()) options.interface = environment.text("SYNCOPATE_INTERFACE").value_or("");
  if (options.secret_file.empty()) options.secret_file = environment.text("SYNCOPATE_SECRET_FILE").value_or("");
  if (options.cluster.empty()) options.cluster = environment.text("SYNCOPATE_CLUSTER").value_or("");
  resolve_time(options.timeout, "SYNCOPATE_TIMEOUT_MS", kTimeout, environment);
  resolve_time(options.join_timeout, "SYNCOPATE_JOIN_TIMEOUT_MS", kJoinTimeout, environment);
  resolve_time(options.silence, "SYNCOPATE_SILENCE_MS", kSilence, environment);
  require(*options.silence >= kShortestSilence,
          "a silence of {} ms is too short for eight heartbeats on a busy machine; allowed: {} ms and more",
          options.silence->count(), kShortestSilence.count());
  if (!options.transport) options.transport = transport_named(environment.text("SYNCOPATE_TRANSPORT").value_or("auto"));
  if (!options.tls) options.tls = tls_named(environment.text("SYNCOPATE_TLS").value_or("auto"));
  const std::chrono::microseconds spin = spin_of(environment);
  if (!options.spin) options.spin = spin;
  require(options.spin->count() >= 0 && options.spin->count() <= kMostSpinUs,
          "spin={} us is out of range; allowed: 0 to {}", options.spin->count(), kMostSpinUs);
  const long delay = environment.integer("SYNCOPATE_DELAY_US", 0, kMostDelayUs).value_or(0);
  if (!options.delay) options.delay = std::chrono::microseconds(delay);
  require(options.delay->count() >= 0 && options.delay->count() <= kMostDelayUs,
          "delay={} us is out of range; allowed: 0 to {}", options.delay->count(), kMostDelayUs);
  const long streams = environment.integer("SYNCOPATE_STREAMS", 1, 16).value_or(1);
  if (!options.streams) options.streams = static_cast<int>(streams);
  const long checksum = environment.integer("SYNCOPATE_CHECKSUM", 0, 1).value_or(0);
  if (!options.checksum) options.checksum = checksum == 1;
  require(*options.streams >= 1 && *options.streams <= 16, "streams={} is out of range; allowed: 1 to 16",
          *options.streams);
}

void require_meeting(const LaunchedPlace& place, const GroupOptions& options) {
  require(
      place.size == 1 || !options.rendezvous.empty(),
      "{} gives rank {} of {}, but no rendezvous (it is derived only where Open MPI, MPICH or Slurm "
      "started all of them on one host). Set two variables on every rank{}: SYNCOPATE_RENDEZVOUS=tcp://HOST:29500, "
      "where HOST is the host of rank 0 and the port is free there, or file:///FOLDER, new or empty and shared; and "
      "SYNCOPATE_SECRET_FILE=FILE, the same content on every host, made by (umask 077; head -c 32 /dev/urandom | "
      "od -An -tx1 | tr -d ' \\n' >FILE). On one host SYNCOPATE_RENDEZVOUS=tcp://127.0.0.1:29500 is enough",
      place.source, place.rank, place.size, place.starter == nullptr ? "" : place.starter->pass);
}

}  // namespace

std::chrono::microseconds spin_of(const base::Environment& environment) {
  return std::chrono::microseconds(environment.integer("SYNCOPATE_SPIN_US", 0, kMostSpinUs).value_or(kSpin.count()));
}

Launch resolve_launch(const GroupOptions& options, const base::Environment& environment) {
  Launch launch{.options = options, .source = {}};
  const LaunchedPlace place = place_of(options, environment);
  launch.options.rank = place.rank;
  launch.options.size = place.size;
  const std::string meeting = resolve_rendezvous(launch.options, place, environment);
  resolve_rest(launch.options, environment);
  require_meeting(place, launch.options);
  require(launch.options.rendezvous.empty() || meeting == kTorchrun || place.source != kNothing,
          "a rendezvous is given ({}), but neither rank nor size; set SYNCOPATE_RANK and SYNCOPATE_SIZE", meeting);
  // Blame needs the rank numbers of `run`; other numbers would name other processes.
  const bool numbered_by_run = place.source == kStarters[0].name;
  if (const auto blame = environment.text("SYNCOPATE_BLAME_FD"); blame && numbered_by_run)
    launch.blame = BlameDescriptor::parse(*blame);
  launch.source = fmt::format("rank {} of {} (from {})", place.rank, place.size, place.source);
  if (place.size > 1) launch.source += fmt::format(", rendezvous {} (from {})", launch.options.rendezvous, meeting);
  return launch;
}

}  // namespace syncopate::transport::connect
