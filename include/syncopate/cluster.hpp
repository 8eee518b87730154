// Clusters: what a network costs, by laws of its links and by what was measured on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "syncopate/collective.hpp"

namespace syncopate {

/// What a link is made of, where that matters beyond its cost.
enum class Medium : std::uint8_t {
  network,
  memory,   ///< that ranks of a host share: bytes are copied into it and out of it
  vectors,  ///< they reach each other's vectors: what is sent back is written there
};

/// Whose memory a collective's vectors lie in: the caller's own, or the group's (Group::allocate).
enum class Memory : std::uint8_t { own, group };
[[nodiscard]] std::string_view name_of(Memory memory) noexcept;
[[nodiscard]] Memory memory_named(std::string_view name);  ///< throws Misuse, naming the allowed names

/// Cost of one link: time to send n bytes = alpha_s + n beta_s_per_byte; reducing adds gamma_s_per_byte.
struct LinkCost {
  double alpha_s = 25e-6;
  double beta_s_per_byte = 8e-9;
  double gamma_s_per_byte = 0.2e-9;
  Medium medium = Medium::network;
};

/// Seconds of a collective by its bytes, as measured: a + b M, or rows of (bytes, seconds).
struct MeasuredCost {
  Collective collective = Collective::allreduce;
  std::string algorithm;  ///< empty: whichever the cluster uses
  double a_s = 0, b_s_per_byte = 0;
  std::vector<std::pair<double, double>> table;  ///< not empty: instead of a and b
};

/// Costs of a network: links between ranks of different hosts and between ranks of one; and what was measured, which
/// goes before the laws of the links for as many ranks on as large hosts as it was measured with.
struct NetworkCost {
  LinkCost inter;
  LinkCost intra;
  std::vector<MeasuredCost> measured{};
  int measured_ranks = 0;
  int measured_ranks_per_host = 1;
  NetworkCost() = default;
  NetworkCost(const LinkCost& everywhere)  // NOLINT(google-explicit-constructor): one cost holds everywhere
      : inter(everywhere), intra(everywhere) {}
  NetworkCost(const LinkCost& between_hosts, const LinkCost& within_hosts)
      : inter(between_hosts), intra(within_hosts) {}
};

/// A cluster file: docs/scheduling.md has the format, `syncopate fit` writes one.
struct Cluster {
  int ranks = 1;
  int ranks_per_host = 1;
  std::optional<LinkCost> inter, intra;  ///< between hosts, inside a host
  std::string transport;                 ///< by which links and costs were measured; empty: not said
  Memory memory = Memory::own;           ///< in which they were measured
  std::string algorithm = "auto";        ///< of the all-reduce
  double cpu_s_per_byte = 0;             ///< what exchanging a byte of gradients takes from computing on the same rank
  std::vector<MeasuredCost> costs;       ///< these override the links
  double links_worst_error = 0;          ///< |predicted / measured - 1| by the links at its worst; 0: not said
};

/// Links that are off by more than this somewhere are not used in silence: an all-reduce's cost is no line.
inline constexpr double kTolerableLinkError = 0.25;
/// Why exchanges on `ranks` ranks are not predicted well: they would go by links that are further off than that. Empty
/// where links are good, or timings on as many ranks come before them.
[[nodiscard]] std::string doubt_of_links(const Cluster& cluster, int ranks);

/// Why a collective of so many bytes is not predicted well: the timings on as many ranks end at smaller ones. Empty
/// where they reach so far, or where there are none.
[[nodiscard]] std::string doubt_of_size(const NetworkCost& cost, int ranks, Collective collective, double bytes);

/// From JSON text. Throws Misuse that names `file`, the key, and what is allowed there.
[[nodiscard]] Cluster parse_cluster(std::string_view json, const std::string& file);
/// From a file; throws SystemFailure where it cannot be read.
[[nodiscard]] Cluster read_cluster(const std::string& file);

/// What a group of that transport ("tcp", "shm", "shm+tcp", "inproc") believes without a cluster: 1 Gbit/s between
/// hosts; within one the same by TCP, else the costs of shared memory.
[[nodiscard]] NetworkCost usual_cost(std::string_view transport, Memory memory = Memory::own);
/// The same from a cluster. What it leaves open is as usual; what was measured over another transport, or in other
/// memory, does not count, but for the links between hosts.
[[nodiscard]] NetworkCost cost_of(const Cluster& cluster, std::string_view transport, Memory memory = Memory::own);
/// As it was measured.
[[nodiscard]] NetworkCost cost_of(const Cluster& cluster);

}  // namespace syncopate
