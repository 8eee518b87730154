// Cluster file: what the measured collectives say of a network, as planners and `auto` read it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fit/links.hpp"

namespace syncopate::tools::fit {

/// A collective, timed: one row of a benchmark.
struct Timing {
  std::string collective, algorithm;
  int ranks = 0;
  std::uint64_t bytes = 0;
  double seconds = 0, cpu_seconds = 0;  ///< of the fastest block; the median, CPU of all ranks together
};

/// What was measured: all ranks together; and, where several hosts have several ranks, ranks of one host, and one rank
/// of each host, for the two kinds of links.
struct Measured {
  std::string transport;
  int ranks_per_host = 1;
  std::vector<Timing> all, within, between;
};

struct ClusterFit {
  LinkFit links;  ///< of all ranks' timings
  std::optional<LinkCost> inter, intra;
  double cpu_s_per_byte = 0;  ///< what all-reducing a byte takes from computing on the same rank, at the largest size
  double worst_of_links = 0;  ///< |error| of the links over the timings that they were fitted to
};

/// Throws Misuse without timings.
[[nodiscard]] ClusterFit fit_cluster(const Measured& measured);

/// The cluster file: links, and one table per collective and algorithm, which override the links where both are known.
[[nodiscard]] nlohmann::json cluster_file(const Measured& measured, const ClusterFit& fit);

/// For people: measured time, fastest algorithm, and how far the links are off, per collective and size.
[[nodiscard]] std::string table_of(const Measured& measured, const ClusterFit& fit);

}  // namespace syncopate::tools::fit
