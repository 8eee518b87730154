// History: a parameter server's job in virtual time, on production's tables, whose weights count every worker's steps.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "server/job/setup.hpp"

namespace syncopate::laws {

/// Element i of a table belongs to worker i modulo their number, and each step of this worker adds 1 to it.
struct HistoryOptions {
  server::Setup setup{};  ///< optimizer sgd without weight decay
  server::Clock steps = 1;
  std::uint64_t seed = 1;  ///< of the delays
  std::function<double(std::size_t worker, server::Clock step)> compute_s{};
  double most_delay_s = 0;  ///< of a message; those from one process to another keep their order
};

/// The weights of a worker's step: the least and the most of each worker's steps that any weight holds.
struct Seen {
  std::size_t worker = 0;
  server::Clock step = 0;
  double time_s = 0;  ///< when the step began
  std::vector<server::Clock> least{}, most{};
  friend bool operator==(const Seen&, const Seen&) = default;
};

struct History {
  std::vector<Seen> seen{};             ///< in the order of time
  std::vector<server::Clock> clocks{};  ///< by worker: number of steps that it ended
  std::vector<bool> finished{};         ///< by worker: it has all updates of all workers
  std::vector<double> took_s{};         ///< by worker: the end of its last step
  std::uint64_t pushes = 0;
  friend bool operator==(const History&, const History&) = default;
};

/// Setting up takes no time. Ends when nothing more can happen. Throws what the tables and the setup's components
/// throw.
[[nodiscard]] History history_of(const HistoryOptions& options);

/// The least and the most steps of each worker in these tables.
[[nodiscard]] Seen seen_in(std::span<const std::vector<float>> tables, std::size_t workers);

struct Limits {
  std::size_t workers = 5, servers = 3;
};
/// Two tables on drawn numbers of servers; workers of different speeds, each slow now and then; messages that take up
/// to two seconds. Every block has elements of every worker.
[[nodiscard]] HistoryOptions drawn_history(const std::string& consistency, const Catalogue& catalogue,
                                           std::uint64_t seed, server::Clock steps, const Limits& limits = {});

}  // namespace syncopate::laws
