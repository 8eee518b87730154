// Measure: one worker of `syncopate bench server`, which measures this library's parameter server.
#pragma once

#include <cstdint>
#include <string>

namespace syncopate::serve {

struct Measured {
  std::uint64_t bytes = 0;  ///< of the vector: whole f32 elements
  std::string contender = "syncopate";  ///< its name in the row
  int tables = 1;           ///< that it is divided into
  int untimed = 2, timed = 5;
};

/// Takes part in the rounds as the worker of the environment. Returns the raw row on worker 0, else nothing.
[[nodiscard]] std::string measure(const Measured& measured);

}  // namespace syncopate::serve
