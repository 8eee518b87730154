// What a job with parameter servers keeps between steps: what a checkpoint of it holds, by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace syncopate {

/// What a job keeps between steps: of all tables, one after another in the order of their creation.
struct KeptTables {
  std::int64_t step = 0;         ///< everybody's updates of so many steps are in it
  std::vector<float> weights{};  ///< the servers', without loss; not looked at by `start`
  std::string optimizer{};       ///< the rule whose state it is
  std::vector<std::pair<std::string, std::vector<float>>> state{};  ///< by name; none: zero
};
/// What a worker's codec has left out of earlier updates, by table, after so many packets.
struct KeptByCodec {
  std::uint64_t packets = 0;
  std::vector<std::vector<std::byte>> tables{};
};

}  // namespace syncopate
