// Replay: one worker of `syncopate bench server --replay`: real exchanges, computing emulated by sleeping.
#pragma once

#include <string>

namespace syncopate::serve {

struct Replayed {
  std::string architecture, contender;
  std::string flow = "front_first";  ///< "alone", "traditional", "wait_free", "front_first"
  std::string consistency = "bsp", codec = "none", answers = "none", placement = "lpt";
  double step_s = 1;  ///< that computing a step takes: it is slept
  int untimed = 6;    ///< steps
  int blocks = 5;     ///< of kBlockSteps steps, which are timed together
};
/// Staleness makes steps differ; with s + 1 steps in a block all blocks are alike (ssp:5).
inline constexpr int kBlockSteps = 6;

/// Takes part as the worker of the environment. Returns the raw row on worker 0, else nothing.
[[nodiscard]] std::string replay(const Replayed& replayed);

}  // namespace syncopate::serve
