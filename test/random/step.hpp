// Step: one call that all ranks of a group make, drawn from a seed.
#pragma once

#include <string>
#include <vector>

#include "random/draw.hpp"
#include "random/values.hpp"
#include "syncopate/collective.hpp"

namespace syncopate::test {

enum class Kind : std::uint8_t { collective, message, exchange, split };

struct Step {
  Kind kind = Kind::collective;
  std::uint64_t key = 0;  ///< of values, memories, and what sub-groups draw
  Collective collective = Collective::allreduce;
  DType dtype = DType::f32;
  Values values = Values::whole;
  std::size_t count = 0;  ///< elements; alltoall_v: most of a part
  CollectiveOptions options;
  bool is_started = false;  ///< by `start`, and waited for later
  int from = 0, to = 0;     ///< message
  int distance = 0;         ///< exchange: ranks from sender to receiver
  int colors = 1;           ///< split
};

/// The group that a step is drawn for.
struct World {
  int ranks = 1;
  int hosts = 1;               ///< of as many ranks each, but for the last
  std::size_t most = 100'000;  ///< elements
  bool may_split = true;
  bool is_exact = false;  ///< only values whose results have known bits
};

[[nodiscard]] Step draw_step(Draw& draw, const World& world);
[[nodiscard]] std::string text_of(const Step& step);

[[nodiscard]] inline Inputs inputs_of(const Step& step) { return {step.key, step.dtype, step.values}; }
/// allgather_v: the length of each rank's part.
[[nodiscard]] std::vector<std::size_t> parts_of(const Step& step, int ranks);
/// alltoall_v: the length of what `from` sends to `to`.
[[nodiscard]] std::size_t part_between(const Step& step, int from, int to);

}  // namespace syncopate::test
