// One worker of `syncopate bench server`, which measures this library's parameter server.
#pragma once

#include <cstdint>
#include <string>

namespace syncopate::bench {

struct Measured {
  std::uint64_t bytes = 0;              ///< size of the vector, in whole f32 elements
  std::string contender = "syncopate";  ///< its name in the row
  int tables = 1;                       ///< number of tables that the vector is divided into
  int untimed = 2, timed = 5;
};

/// Runs the rounds as the worker that the environment describes. Returns the raw row on worker 0, else an empty
/// string.
[[nodiscard]] std::string measure(const Measured& measured);

}  // namespace syncopate::bench
