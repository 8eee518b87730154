// History: workers of any speeds train in virtual time by a rule alone; records the weights of each step.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "server/consistency.hpp"

namespace syncopate::server {

struct Scenario {
  std::size_t workers = 2, shards = 1;
  Clock steps = 1;
  std::function<double(std::size_t worker, Clock step)> compute_s;
  std::function<double(std::uint64_t message)> delay_s;  ///< of the n-th message; a link delivers in order
  std::function<double(std::size_t worker, Clock step, std::size_t shard)> significance = {};  ///< of one update
};

/// The weights of a worker's step: for every shard, the number of each worker's steps that they contained.
struct Reading {
  std::size_t worker = 0;
  Clock step = 0;
  double waited_s = 0;
  std::vector<std::vector<Clock>> seen;
};

struct History {
  std::vector<Reading> readings;
  std::vector<Clock> ended;                 ///< steps of each worker
  std::vector<double> ended_s;              ///< when each worker had ended its last step
  std::uint64_t sent = 0;                   ///< updates that were sent
  std::vector<std::vector<Clock>> applied;  ///< by shard and worker, at the end of all events

  [[nodiscard]] double seconds() const;
  [[nodiscard]] double waited_s() const;
  /// Updates sent per step, worker and shard.
  [[nodiscard]] double traffic(const Scenario& scenario) const;
  /// The largest number of the slowest worker's steps that a reading did not contain.
  [[nodiscard]] Clock stalest() const;
};

/// Runs until no event is left: every worker has ended all steps, or some wait forever. The servers count the applied
/// updates themselves, so that the record does not depend on the clocks of the rule.
[[nodiscard]] History history_of(const Rule& rule, const Scenario& scenario);

}  // namespace syncopate::server
