// Workload: the time of each layer on each rank in each step: the profile's times with noise and slow ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/timeline.hpp"
#include "syncopate/simulate.hpp"

namespace syncopate::simulate {

/// Seconds of one rank's step, by layer in forward order.
struct Work {
  std::vector<double> forward_s, backward_s;
};

class Workload final {
 public:
  Workload(const schedule::Timeline& timeline, SimulateOptions options);
  /// A layer's share of the forward pass is its share of the backward pass. Noise is log-normal with mean 1, a function
  /// of seed, step, rank, layer and pass, so it is equal for every policy.
  [[nodiscard]] Work of(std::uint64_t step, std::uint32_t rank) const;

 private:
  const schedule::Timeline& timeline_;
  SimulateOptions options_;
  double backward_s_ = 0;  ///< sum over all layers
};

}  // namespace syncopate::simulate
