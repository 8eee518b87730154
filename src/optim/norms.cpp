// Squares of blocks by the kernel, sums of blocks in their order.
#include "optim/norms.hpp"

#include <cmath>

#include "base/require.hpp"
#include "kernel/norm.hpp"

namespace syncopate::optim {

namespace {

double squared(std::span<const float> values) {
  return kernel::squared_norm(DType::f32, std::as_bytes(values).data(), values.size());
}

}  // namespace

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

namespace {

/// The squares of consecutive tensors, starting with tensor `first`.
struct Travelling {
  const Shards& shards;
  std::size_t first;
  std::span<std::vector<Squares>> squares;

  /// Visits those of a rank's blocks, tensor after tensor.
  template <class Visit>
  void each_of_rank(int rank, const Visit& visit) const {
    for (std::size_t i = 0; i < squares.size(); ++i) {
      if (squares[i].empty()) continue;
      const Range part = shards.of(first + i, rank);
      for (std::size_t at = part.begin; at < part.end; at += kBlock) visit(squares[i][at / kBlock]);
    }
  }
};

}  // namespace

void require_fits(const SharedWork& work, const Rule& rule, std::span<const WeightTensor> tensors) {
  base::require(work.shards.tensors() == tensors.size(), "shards of {} tensors for an optimizer of {}",
                work.shards.tensors(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i)
    base::require(work.shards.elements(i) == tensors[i].weights.count, "'{}' has {} weights, but its shards have {}",
                  tensors[i].name, tensors[i].weights.count, work.shards.elements(i));
  base::require(work.rank >= 0 && work.rank < work.shards.ranks(), "rank {} of shards of {} ranks", work.rank,
                work.shards.ranks());
  base::require(rule.trust == nullptr || work.gather, "optimizer {} shares its norms and needs SharedWork::gather",
                rule.name);
}

void gather_squares(const SharedWork& work, std::size_t first, std::span<std::vector<Squares>> squares) {
  const Travelling all{work.shards, first, squares};
  std::vector<double> values;
  std::vector<std::size_t> counts;
  for (int rank = 0; rank < work.shards.ranks(); ++rank) {
    const std::size_t before = values.size();
    all.each_of_rank(rank, [&](const Squares& block) {
      values.push_back(block.weights);
      values.push_back(block.direction);
    });
    counts.push_back(values.size() - before);
  }
  if (values.empty()) return;
  work.gather(values, counts);
  auto value = values.begin();
  for (int rank = 0; rank < work.shards.ranks(); ++rank)
    all.each_of_rank(rank, [&](Squares& block) {
      block.weights = *value++;
      block.direction = *value++;
    });
}

}  // namespace syncopate::optim
