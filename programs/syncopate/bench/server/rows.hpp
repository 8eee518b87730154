// Rows of the parameter server: rounds of push and pull of all runs, with the bound of a host's port.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace syncopate::tools::bench {

/// Placement on hosts: worker w on host w, server k on host k modulo the number of workers.
struct ServerPlace {
  int workers = 1;
  int servers = 1;
  double bits_per_s = 0;  ///< of one host's port; 0: not known
};

/// Least time in which every worker can push `bytes`, evenly divided among the servers, and pull as many: what the
/// busiest port carries in one direction, headers not counted. On a host with s of K servers that is, in either
/// direction, the worker's (K-s)/K of the bytes and s (W-1)/K of them for the others' workers. 0 when there is no
/// bound: no rate, or nothing leaves a host.
[[nodiscard]] double push_pull_bound(const ServerPlace& place, std::uint64_t bytes);

class ServerRows final {
 public:
  explicit ServerRows(const ServerPlace& place) : place_(place) {}
  /// Takes a raw row as a contender prints it (bench/contender/push_pull.hpp); other lines give false. Throws Corrupt
  /// for a raw row that lacks something.
  bool take(const std::string& line);

  [[nodiscard]] bool empty() const noexcept { return series_.empty(); }
  [[nodiscard]] bool all_correct() const;
  /// By size, then in the order of first appearance.
  [[nodiscard]] std::vector<nlohmann::json> json() const;
  [[nodiscard]] std::string table() const;

 private:
  struct Series {
    std::string contender;
    std::uint64_t bytes = 0;
    bool correct = true;
    std::vector<double> seconds, cpu_seconds;  ///< of rounds: of the slowest worker; of all processes
  };
  [[nodiscard]] std::vector<Series> ordered() const;

  const ServerPlace place_;
  std::vector<Series> series_;
};

}  // namespace syncopate::tools::bench
