// Parts: which groups of a tensor each rank adds up.
#pragma once

#include <algorithm>

#include "compress/round.hpp"

namespace syncopate::compress::quantised {

/// The elements of a tensor that a rank adds up: an even part of its groups. Which part it is goes round with the
/// tensor's key, so that the larger parts of many tensors are not all the same rank's; it depends on nothing else, so
/// that results and what a rank keeps do not depend on which tensors travel together.
[[nodiscard]] inline Range part_of(const Tensor& tensor, std::size_t group, const Moment& moment) noexcept {
  const auto ranks = static_cast<std::size_t>(moment.ranks), rank = static_cast<std::size_t>(moment.rank);
  const std::size_t count = tensor.values.count;
  const Range groups = even_part((count + group - 1) / group, ranks, (rank + tensor.key % ranks) % ranks);
  return {std::min(groups.begin * group, count), std::min(groups.end * group, count)};
}

/// The most elements that part_of gives a rank.
[[nodiscard]] inline std::size_t most_of(const Tensor& tensor, std::size_t group, int ranks) noexcept {
  const std::size_t groups = (tensor.values.count + group - 1) / group;
  return std::min(even_part(groups, static_cast<std::size_t>(ranks), 0).size() * group, tensor.values.count);
}

}  // namespace syncopate::compress::quantised
