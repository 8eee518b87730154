// The state of a parameter-server job between steps, as a checkpoint holds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace syncopate {

/// The state of all tables between steps. Each vector holds the tables one after another in the order of creation.
struct KeptTables {
  std::int64_t step = 0;  ///< number of steps whose updates of all workers are included
  std::vector<float>
      weights{};  ///< the servers' exact weights; `start` reads those of tables of f16, bf16 or a storage's memory
  std::string optimizer{};                                          ///< the rule whose state it is
  std::vector<std::pair<std::string, std::vector<float>>> state{};  ///< by name; empty: zero
};
/// A worker's codec state by table: what its packets so far have left out, by element, then the state that a codec
/// keeps for each block. In a run with other blocks (number of servers, placement) a codec's state is empty at first.
struct KeptByCodec {
  std::uint64_t packets = 0;
  std::vector<std::vector<std::byte>> tables{};
};

}  // namespace syncopate
