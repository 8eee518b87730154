// Launch: rank, size and meeting place of this process, from options, then from what started it.
#include "transport/connect/launch.hpp"

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

struct Starter {
  const char* name;
  const char* rank;
  const char* size;
};
constexpr Starter kStarters[] = {{"SYNCOPATE_RANK/SYNCOPATE_SIZE", "SYNCOPATE_RANK", "SYNCOPATE_SIZE"},
                                 {"torchrun", "RANK", "WORLD_SIZE"},
                                 {"Slurm", "SLURM_PROCID", "SLURM_NTASKS"},
                                 {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                 {"PMI", "PMI_RANK", "PMI_SIZE"}};

constexpr const char* kNothing = "nothing: one rank";

struct Place {
  int rank = 0;
  int size = 1;
  std::string source = kNothing;
};

void check(const Place& place, std::string_view rank_name, std::string_view size_name) {
  require(place.size >= 1 && place.size <= kMostRanks, "{}={} is out of range; allowed: 1 to {}", size_name, place.size,
          kMostRanks);
  require(place.rank >= 0 && place.rank < place.size, "{}={} does not fit {}={}; allowed: 0 to {}", rank_name,
          place.rank, size_name, place.size, place.size - 1);
}

std::optional<Place> place_from(const Starter& starter, const base::Environment& environment) {
  const auto rank = environment.integer(starter.rank, 0, kMostRanks);
  const auto size = environment.integer(starter.size, 1, kMostRanks);
  // SLURM_NTASKS is set in a batch script's shell too; a rank without a size is nowhere meant.
  if (!rank && (!size || starter.rank != std::string_view("SYNCOPATE_RANK"))) return std::nullopt;
  require(rank && size, "{} is set without {}; set both or none", rank ? starter.rank : starter.size,
          rank ? starter.size : starter.rank);
  const Place place{static_cast<int>(*rank), static_cast<int>(*size), starter.name};
  check(place, starter.rank, starter.size);
  return place;
}

Place place_of(const GroupOptions& options, const base::Environment& environment) {
  if (options.rank || options.size) {
    require(options.rank && options.size, "the option {} is set without {}; set both or none",
            options.rank ? "rank" : "size", options.rank ? "size" : "rank");
    const Place place{*options.rank, *options.size, "options"};
    check(place, "option rank", "option size");
    return place;
  }
  for (const Starter& starter : kStarters)
    if (auto place = place_from(starter, environment)) return *place;
  return {};
}

/// torchrun's agent keeps MASTER_PORT for itself when it serves the store; the next port is ours.
std::string torchrun_rendezvous(const base::Environment& environment) {
  const auto host = environment.text("MASTER_ADDR");
  const auto port = environment.integer("MASTER_PORT", 1, 65534);
  if (!host || !port) return {};
  const bool taken = environment.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  const bool v6 = host->find(':') != std::string::npos && host->front() != '[';
  return fmt::format(fmt::runtime(v6 ? "tcp://[{}]:{}" : "tcp://{}:{}"), *host, *port + (taken ? 1 : 0));
}

/// Returns what was found where, for the log.
std::string settle_rendezvous(GroupOptions& options, const base::Environment& environment) {
  if (!options.rendezvous.empty()) return "options";
  if (const auto given = environment.text("SYNCOPATE_RENDEZVOUS")) {
    options.rendezvous = *given;
    return "SYNCOPATE_RENDEZVOUS";
  }
  options.rendezvous = torchrun_rendezvous(environment);
  return options.rendezvous.empty() ? "" : "MASTER_ADDR and MASTER_PORT";
}

void settle_time(std::optional<milliseconds>& option, const char* name, milliseconds standard,
                 const base::Environment& environment) {
  const auto found = environment.integer(name, 1, std::numeric_limits<int>::max());
  if (!option) option = found ? milliseconds(*found) : standard;
  require(option->count() > 0, "timeouts and silence must be positive; one is {} ms", option->count());
}

void settle_rest(GroupOptions& options, const base::Environment& environment) {
  if (options.interface.empty()) options.interface = environment.text("SYNCOPATE_INTERFACE").value_or("");
  if (options.secret_file.empty()) options.secret_file = environment.text("SYNCOPATE_SECRET_FILE").value_or("");
  if (options.cluster.empty()) options.cluster = environment.text("SYNCOPATE_CLUSTER").value_or("");
  settle_time(options.timeout, "SYNCOPATE_TIMEOUT_MS", kTimeout, environment);
  settle_time(options.join_timeout, "SYNCOPATE_JOIN_TIMEOUT_MS", kJoinTimeout, environment);
  settle_time(options.silence, "SYNCOPATE_SILENCE_MS", kSilence, environment);
  if (options.transport.empty()) options.transport = environment.text("SYNCOPATE_TRANSPORT").value_or("auto");
  require(options.transport == "auto" || options.transport == "tcp" || options.transport == "shm",
          "transport '{}' is unknown; allowed: auto, tcp, shm", options.transport);
  const long spin = environment.integer("SYNCOPATE_SPIN_US", 0, kMostSpinUs).value_or(kSpin.count());
  if (!options.spin) options.spin = std::chrono::microseconds(spin);
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

}  // namespace

Launch resolve_launch(const GroupOptions& options, const base::Environment& environment) {
  Launch launch{.options = options, .source = {}};
  const Place place = place_of(options, environment);
  launch.options.rank = place.rank;
  launch.options.size = place.size;
  const std::string meeting = settle_rendezvous(launch.options, environment);
  settle_rest(launch.options, environment);
  require(place.size == 1 || !launch.options.rendezvous.empty(),
          "{} says rank {} of {}, but not where the ranks meet; set SYNCOPATE_RENDEZVOUS to tcp://host:port (rank 0 "
          "listens "
          "there) or file:///folder (shared, new or empty)",
          place.source, place.rank, place.size);
  require(launch.options.rendezvous.empty() || meeting == "MASTER_ADDR and MASTER_PORT" || place.source != kNothing,
          "a rendezvous is given ({}), but neither rank nor size; set SYNCOPATE_RANK and SYNCOPATE_SIZE", meeting);
  // Whoever numbers ranks otherwise than `run` does would name others.
  const bool numbered_by_run = place.source == kStarters[0].name;
  launch.blames = environment.integer("SYNCOPATE_BLAME", 0, 1).value_or(0) == 1 && numbered_by_run;
  launch.source = fmt::format("rank {} of {} (from {})", place.rank, place.size, place.source);
  if (place.size > 1) launch.source += fmt::format(", rendezvous {} (from {})", launch.options.rendezvous, meeting);
  return launch;
}

}  // namespace syncopate::transport::connect
