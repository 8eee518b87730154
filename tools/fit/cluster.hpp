// Cluster file: what the measured collectives say of a network, as planners and `auto` read it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fit/links.hpp"

namespace syncopate::tools::fit {

/// A collective, timed: one row of a benchmark.
struct Timing {
  std::string collective, algorithm;
  int ranks = 0;
  std::uint64_t bytes = 0;
  double seconds = 0, cpu_seconds = 0;  ///< medians; CPU of all ranks together
};

struct ClusterFit {
  LinkFit links;
  double cpu_s_per_byte = 0;  ///< what all-reducing a byte takes from computing on the same rank, at the largest size
  double worst_of_links = 0;  ///< |error| of the links over the timings that they were fitted to
};

/// Throws Misuse without timings.
[[nodiscard]] ClusterFit fit_cluster(const std::vector<Timing>& timings);

/// The cluster file: links, and one table per collective and algorithm, which override the links where both are known.
[[nodiscard]] nlohmann::json cluster_file(const std::vector<Timing>& timings, const ClusterFit& fit,
                                          int ranks_per_host);

/// For people: measured time, fastest algorithm, and how far the links are off, per collective and size.
[[nodiscard]] std::string table_of(const std::vector<Timing>& timings, const ClusterFit& fit);

}  // namespace syncopate::tools::fit
