// Parts: the groups of a tensor that each rank sums.
#pragma once

#include <algorithm>

#include "compress/round.hpp"

namespace syncopate::compress::quantised {

/// The elements of a tensor that a rank sums: an even part of its groups. The tensor's key rotates the parts among the
/// ranks, so that the larger parts of many tensors do not all belong to one rank. Parts depend on nothing else, so
/// results and state do not depend on which tensors share a bucket.
[[nodiscard]] inline Range part_of(const Tensor& tensor, std::size_t group, const StepInfo& info) noexcept {
  const auto ranks = static_cast<std::size_t>(info.ranks), rank = static_cast<std::size_t>(info.rank);
  const std::size_t count = tensor.values.count;
  const Range groups = even_part((count + group - 1) / group, ranks, (rank + tensor.key % ranks) % ranks);
  return {std::min(groups.begin * group, count), std::min(groups.end * group, count)};
}

/// The largest number of elements of a part.
[[nodiscard]] inline std::size_t most_of(const Tensor& tensor, std::size_t group, int ranks) noexcept {
  const std::size_t groups = (tensor.values.count + group - 1) / group;
  return std::min(even_part(groups, static_cast<std::size_t>(ranks), 0).size() * group, tensor.values.count);
}

}  // namespace syncopate::compress::quantised
