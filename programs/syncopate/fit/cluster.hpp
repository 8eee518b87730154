// Cluster file: the costs of a network by measured collectives, for planners and `auto`.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fit/links.hpp"
#include "syncopate/cluster.hpp"

namespace syncopate::tools::fit {

/// A collective, timed: one row of a benchmark.
struct Timing {
  std::string collective, algorithm;
  int ranks = 0;
  std::uint64_t bytes = 0;
  double seconds = 0, cpu_seconds = 0;  ///< of the fastest block; the median, CPU of all ranks together
};

/// The measurements: all ranks together; if several hosts have several ranks, also the ranks of one host, and one rank
/// of each host, for the two kinds of links.
struct Measured {
  std::string transport;
  Memory memory = Memory::own;
  int ranks_per_host = 1;
  std::vector<Timing> all, within, between;
  std::vector<CodingCost> codecs;       ///< that were asked for
  std::vector<std::uint64_t> left_out;  ///< sizes that the time did not suffice for
};

/// How far the links miss the timings of one size that they were fitted to, as |predicted / measured - 1|.
struct SizeError {
  std::uint64_t bytes = 0;
  double median = 0, worst = 0;
  std::string collective, algorithm;  ///< of the worst
};

struct ClusterFit {
  LinkFit links;  ///< of all ranks' timings
  std::optional<LinkCost> inter, intra;
  double cpu_s_per_byte = 0;  ///< what all-reducing a byte takes from computing on the same rank, at the largest size
  std::vector<SizeError> errors;  ///< sizes ascend
  double median_of_links = 0;     ///< over all timings that links were fitted to
  double worst_of_links = 0;      ///< kTolerableLinkError is the limit
};

/// Throws Misuse without timings.
[[nodiscard]] ClusterFit fit_cluster(const Measured& measured);

/// The cluster file: one table per collective and algorithm, which override the links where both are known; and links,
/// marked with their errors ("links_worst_error", "links_median_error").
[[nodiscard]] nlohmann::json cluster_file(const Measured& measured, const ClusterFit& fit);

/// By size: {"bytes", "median", "worst", "collective", "algorithm"}.
[[nodiscard]] nlohmann::json errors_of(const ClusterFit& fit);

/// At which sizes the links are off by more than kTolerableLinkError, by how much, and what is gone by instead; empty
/// where they are not.
[[nodiscard]] std::string complaint_about(const Measured& measured, const ClusterFit& fit);

/// Which sizes the limit left out, and what follows; empty where it left out none.
[[nodiscard]] std::string left_out(const Measured& measured, double limit_s);

/// For people: measured time, fastest algorithm, and how far the links are off, per collective and size.
[[nodiscard]] std::string table_of(const Measured& measured, const ClusterFit& fit);

}  // namespace syncopate::tools::fit
