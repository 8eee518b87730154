// Shards: divides each tensor's blocks evenly; the remainder goes to the ranks with the least so far.
#include <algorithm>
#include <numeric>

#include "base/require.hpp"
#include "optim/norms.hpp"
#include "syncopate/optimizer.hpp"

namespace syncopate {

namespace {

/// The ranks in the order of their parts of a tensor, and the number of ranks at the end that have one block more than
/// the others: those with the least so far. The last rank has the incomplete block.
struct Layout {
  std::vector<std::size_t> ranks;
  std::size_t larger = 0;
};

Layout layout_of(std::size_t blocks, std::span<const std::size_t> loads) {
  Layout layout{std::vector<std::size_t>(loads.size()), blocks % loads.size()};
  std::iota(layout.ranks.begin(), layout.ranks.end(), std::size_t{0});
  std::ranges::stable_sort(layout.ranks, {}, [&](std::size_t rank) { return loads[rank]; });
  std::ranges::rotate(layout.ranks, layout.ranks.begin() + static_cast<std::ptrdiff_t>(layout.larger));
  return layout;
}

}  // namespace

// By induction the loads of two ranks differ by one block at most after every tensor: hence those of consecutive
// tensors by two.
Shards::Shards(std::span<const std::size_t> elements, int ranks)
    : elements_(elements.begin(), elements.end()), ranks_(ranks) {
  base::require(ranks >= 1, "shards of {} ranks; allowed: at least 1", ranks);
  const auto count = static_cast<std::size_t>(ranks);
  std::vector<std::size_t> loads(count);
  parts_.resize(elements_.size() * count);
  for (std::size_t i = 0; i < elements_.size(); ++i) {
    const std::size_t blocks = optim::blocks_of(elements_[i]);
    const Layout layout = layout_of(blocks, loads);
    std::size_t begin = 0;
    for (std::size_t at = 0; at < count; ++at) {
      const std::size_t mine = blocks / count + (at + layout.larger >= count ? 1 : 0);
      const std::size_t end = std::min(elements_[i], begin + mine * optim::kBlock);
      parts_[i * count + layout.ranks[at]] = {begin, end};
      loads[layout.ranks[at]] += end - begin;
      begin = end;
    }
  }
}

Range Shards::of(std::size_t tensor, int rank) const {
  base::require(tensor < tensors() && rank >= 0 && rank < ranks_, "the shard of rank {} of tensor {}, of {} and {}",
                rank, tensor, ranks_, tensors());
  return parts_[tensor * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(rank)];
}

std::size_t Shards::elements_of_rank(int rank) const {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < tensors(); ++i) sum += of(i, rank).size();
  return sum;
}

void Shards::cut(std::span<const float> whole, int rank, std::span<float> parts) const {
  std::size_t tensor_at = 0, part_at = 0;
  for (std::size_t i = 0; i < tensors(); ++i) {
    const Range part = of(i, rank);
    std::ranges::copy(whole.subspan(tensor_at + part.begin, part.size()), parts.subspan(part_at).begin());
    tensor_at += elements_[i];
    part_at += part.size();
  }
}

void Shards::join(std::span<const float> parts, int rank, std::span<float> whole) const {
  std::size_t tensor_at = 0, part_at = 0;
  for (std::size_t i = 0; i < tensors(); ++i) {
    const Range part = of(i, rank);
    std::ranges::copy(parts.subspan(part_at, part.size()), whole.subspan(tensor_at + part.begin).begin());
    tensor_at += elements_[i];
    part_at += part.size();
  }
}

}  // namespace syncopate
