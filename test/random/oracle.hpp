// Oracle: what a rank must hold after a step, from the inputs of all ranks, element by element.
#pragma once

#include <string>
#include <vector>

#include "random/step.hpp"

namespace syncopate::test {

/// The ranks among which a step takes place, by their numbers in the group, and this rank's place among them.
struct Members {
  std::vector<int> ranks;
  int me = 0;
  [[nodiscard]] int size() const { return static_cast<int>(ranks.size()); }
};

/// Elements [begin, end) of the result: the reduction of all members, or what member `from` had at `source` and behind.
struct Segment {
  std::size_t begin = 0, end = 0;
  bool is_reduced = false;
  int from = 0;
  std::size_t source = 0;
};

/// The specified elements of the result, in the step's result vector.
[[nodiscard]] std::vector<Segment> segments_of(const Step& step, const Members& members);
/// The length of the result vector, and the length of the sent vector if they differ.
[[nodiscard]] std::size_t result_count(const Step& step, const Members& members);
[[nodiscard]] std::size_t input_count(const Step& step, const Members& members);

/// The first element that is wrong, in words; empty if none is.
[[nodiscard]] std::string flaw_in(const Buffer& result, const Step& step, const Members& members);
/// Whether every member ends with the same specified vector.
[[nodiscard]] bool is_same_everywhere(const Step& step);

}  // namespace syncopate::test
