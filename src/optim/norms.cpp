// Squares of blocks by the kernel, sums of blocks in their order.
#include "optim/norms.hpp"

#include <algorithm>
#include <cmath>

#include "base/require.hpp"
#include "kernel/norm.hpp"

namespace syncopate::optim {

namespace {

double squared(std::span<const float> values) {
  return kernel::squared_norm(DType::f32, std::as_bytes(values).data(), values.size());
}

}  // namespace

BlockSquares::BlockSquares(std::span<const std::size_t> elements) : begins_{0} {
  for (const std::size_t count : elements) begins_.push_back(begins_.back() + blocks_of(count));
  squares_.resize(begins_.back());
}

Squares squares_of(const TensorSlice& block) { return {squared(block.weights), squared(block.gradient)}; }

Norms norms_of(std::span<const Squares> blocks) {
  Squares sum;
  for (const Squares& block : blocks) {
    sum.weights += block.weights;
    sum.direction += block.direction;
  }
  return {std::sqrt(sum.weights), std::sqrt(sum.direction)};
}

double trust_of(const Rule& rule, const Hyperparameters& with, const Norms& norms) {
  if (norms.weights == 0 || norms.direction == 0) return 1;
  return rule.trust(with, norms);
}

void require_fits(const SharedUpdate& work, const Rule& rule, std::span<const WeightTensor> tensors) {
  base::require(work.shards.tensors() == tensors.size(), "shards of {} tensors for an optimizer of {}",
                work.shards.tensors(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i)
    base::require(work.shards.elements(i) == tensors[i].weights.count, "'{}' has {} weights, but its shards have {}",
                  tensors[i].name, tensors[i].weights.count, work.shards.elements(i));
  base::require(work.rank >= 0 && work.rank < work.shards.ranks(), "rank {} of shards of {} ranks", work.rank,
                work.shards.ranks());
  base::require(rule.trust == nullptr || work.gather, "optimizer {} shares its norms and needs SharedUpdate::gather",
                rule.name);
}

void gather_squares(const SharedUpdate& work, std::size_t first, BlockSquares& squares) {
  std::vector<int> owners(squares.all().size());
  for (std::size_t i = 0; i < squares.tensors(); ++i) {
    if (squares.of(i).empty()) continue;
    for (int rank = 0; rank < work.shards.ranks(); ++rank) {
      const Range part = work.shards.of(first + i, rank);
      const auto begin = owners.begin() + static_cast<std::ptrdiff_t>(squares.begin(i) + part.begin / kBlock);
      std::fill_n(begin, blocks_of(part.size()), rank);
    }
  }
  static_assert(sizeof(Squares) == 2 * sizeof(double));  // a block's two results
  const std::span<double> results(reinterpret_cast<double*>(squares.all().data()), 2 * squares.all().size());
  WorkDivision(owners, work.shards.ranks()).gather(results, work.gather);
}

}  // namespace syncopate::optim
