// One worker of `syncopate bench server --replay`: real exchanges, computation emulated by sleeping.
#pragma once

#include <string>

namespace syncopate::bench {

struct Replayed {
  std::string architecture, contender;
  std::string flow = "front_first";  ///< "alone", "traditional", "wait_free", "front_first"
  std::string consistency = "bsp", codec = "none", answers = "none", placement = "lpt";
  double step_s = 1;  ///< computing time of a step, which is slept
  int untimed = 6;    ///< steps
  int blocks = 5;     ///< number of timed blocks of kBlockSteps steps
};
/// Staleness makes steps differ; a block of s + 1 = 6 steps (ssp:5) makes all blocks alike.
inline constexpr int kBlockSteps = 6;

/// Runs as the worker that the environment describes. Returns the raw row on worker 0, else an empty string.
[[nodiscard]] std::string replay(const Replayed& replayed);

}  // namespace syncopate::bench
