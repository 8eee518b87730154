// Clusters: the costs of a network, by laws of its links and by measurements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "syncopate/collective.hpp"

namespace syncopate {

/// The medium of a link, if it changes more than the link's cost.
enum class Medium : std::uint8_t {
  network,
  memory,   ///< shared memory of a host: bytes are copied in and out
  vectors,  ///< ranks access each other's vectors: a reply is written in place
};

/// The memory of a collective's vectors: the caller's own, or the group's (Group::allocate).
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

/// Measured seconds of a collective as a function of its bytes: a + b M, or a table of (bytes, seconds).
struct MeasuredCost {
  Collective collective = Collective::allreduce;
  std::string algorithm;  ///< empty: the cluster's algorithm
  double a_s = 0, b_s_per_byte = 0;
  std::vector<std::pair<double, double>> table;  ///< if not empty, used instead of a and b
};

/// Costs of a network: laws of the links between hosts and inside a host, and measured costs. Measured costs take
/// precedence for groups with the number of ranks, and of ranks per host, that they were measured with.
struct NetworkCost {
  LinkCost inter;
  LinkCost intra;
  std::vector<MeasuredCost> measured{};
  int measured_ranks = 0;
  int measured_ranks_per_host = 1;
  NetworkCost() = default;
  NetworkCost(const LinkCost& everywhere)  // NOLINT(google-explicit-constructor): the same cost for every link
      : inter(everywhere), intra(everywhere) {}
  NetworkCost(const LinkCost& between_hosts, const LinkCost& within_hosts)
      : inter(between_hosts), intra(within_hosts) {}
};

/// Measured time of coding on one core, per byte of gradients.
struct CodingCost {
  std::string codec;  ///< with its parameter
  double encode_s_per_byte = 0;
  double decode_s_per_byte = 0;  ///< for one rank's packet
};

/// A cluster file: docs/scheduling.md has the format, `syncopate fit` writes one.
struct Cluster {
  int ranks = 1;
  int ranks_per_host = 1;
  std::optional<LinkCost> inter, intra;  ///< between hosts, inside a host
  std::string transport;                 ///< of the measurements; empty: unknown
  Memory memory = Memory::own;           ///< of the vectors in the measurements
  std::string algorithm = "auto";        ///< of the all-reduce
  double cpu_s_per_byte = 0;             ///< CPU time per exchanged byte that computing on the same rank loses
  std::vector<MeasuredCost> costs;       ///< measured; they take precedence over the links
  std::vector<CodingCost> codecs{};      ///< measured by `syncopate fit --codec`
  double links_worst_error = 0;          ///< largest |predicted / measured - 1| of the links' laws; 0: unknown
};

/// Largest `links_worst_error` at which predictions by the laws of the links carry no warning.
inline constexpr double kTolerableLinkError = 0.25;
/// The warning for predictions on `ranks` ranks that rely on links whose error is above kTolerableLinkError. Empty if
/// the links are accurate enough, or if measured costs for that number of ranks are used instead.
[[nodiscard]] std::string warning_about_links(const Cluster& cluster, int ranks);

/// The warning for a collective of more bytes than the largest size measured with as many ranks. Empty if a measured
/// size is at least as large, or if nothing was measured.
[[nodiscard]] std::string warning_about_size(const NetworkCost& cost, int ranks, Collective collective, double bytes);

/// Parses JSON text. Throws Misuse that names `file`, the key and the allowed values.
[[nodiscard]] Cluster parse_cluster(std::string_view json, const std::string& file);
/// Reads a file; throws SystemFailure if it cannot be read.
[[nodiscard]] Cluster read_cluster(const std::string& file);

/// The costs that a group assumes without a cluster file, by transport ("tcp", "shm", "shm+tcp", "inproc"): 1 Gbit/s
/// between hosts; inside a host the same for tcp, else the costs of shared memory.
[[nodiscard]] NetworkCost usual_cost(std::string_view transport, Memory memory = Memory::own);
/// The costs that a group takes from a cluster file. A cost that the file omits is the usual one. Measurements over
/// another transport or in another kind of memory are ignored, except for the links between hosts.
[[nodiscard]] NetworkCost cost_of(const Cluster& cluster, std::string_view transport, Memory memory = Memory::own);
/// Uses the transport and the memory of the cluster's measurements.
[[nodiscard]] NetworkCost cost_of(const Cluster& cluster);

}  // namespace syncopate
