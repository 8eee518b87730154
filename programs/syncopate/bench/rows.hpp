// Rows: raw blocks of all rounds become one measured row per (algorithm, contender, size), as JSON or as a table.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace syncopate::tools::bench {

/// All blocks of one row, in seconds per call.
struct Series {
  std::string collective, algorithm, contender, transport, memory, dtype;
  int ranks = 0;
  int ranks_per_host = 1;
  std::uint64_t bytes = 0;
  bool correct = true;
  std::vector<double> seconds;      ///< of the slowest rank
  std::vector<double> cpu_seconds;  ///< of all ranks together
};

class Rows final {
 public:
  /// `bits_per_s` is the rate of one host's port, 0 when it is not known.
  explicit Rows(double bits_per_s, int ranks_per_host = 1) : bits_per_s_(bits_per_s), ranks_per_host_(ranks_per_host) {}
  /// Takes a raw row as a contender prints it; other lines are none of ours and give false.
  /// Throws Corrupt for a raw row that lacks something.
  bool add(const std::string& line);
  [[nodiscard]] bool empty() const { return series_.empty(); }
  [[nodiscard]] bool all_correct() const;
  /// Ordered by size, then in the order of first appearance.
  [[nodiscard]] std::vector<nlohmann::json> json() const;
  [[nodiscard]] std::string table() const;
  /// By which our ranks were connected; empty where only others took part.
  [[nodiscard]] std::string transport() const;

 private:
  [[nodiscard]] std::vector<const Series*> ordered() const;
  double bits_per_s_;
  int ranks_per_host_;
  std::vector<Series> series_;
};

/// Bytes on Ethernet for each byte of payload: 1514 + 24 for 1448, with 12 bytes of TCP options.
inline constexpr double kEthernetHeaders = 1.047;

/// Least time in which `bytes` can be combined when the port of each of M hosts moves `bits_per_s` each way (headers
/// not counted): all-reduce 2(M-1)/M S/BW, broadcast and reduce S/BW, all-to-all (M-1)/M S/BW for each rank of a host,
/// the others (M-1)/M S/BW. 0 when there is no bound: no rate, one host, or a barrier.
[[nodiscard]] double bound_seconds(const Series& series, double bits_per_s);

[[nodiscard]] double median(std::vector<double> values);
[[nodiscard]] nlohmann::json timing(const std::vector<double>& seconds);  ///< median, min, max and n

}  // namespace syncopate::tools::bench
