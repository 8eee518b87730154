// Norms of a tensor in fixed blocks: equal bits, however blocks are divided over threads or ranks, which share them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "optim/rule.hpp"
#include "syncopate/optimizer.hpp"

namespace syncopate::optim {

/// Elements of a block; the last one of a tensor may have fewer. Part of the law of layer-wise results: another
/// length changes the order of summation. Weights, gradient and two states of a block are 64 KiB.
inline constexpr std::size_t kBlock = 4096;

[[nodiscard]] constexpr std::size_t blocks_of(std::size_t elements) noexcept {
  return (elements + kBlock - 1) / kBlock;
}

/// The squared norms of one block.
struct Squares {
  double weights = 0, direction = 0;
};

/// The squares of one block, each as kernel/norm.hpp defines them.
[[nodiscard]] Squares squares_of(const TensorSlice& block);
/// The norms of a tensor from the squares of all its blocks, summed in the order of the blocks in f64.
[[nodiscard]] Norms norms_of(std::span<const Squares> blocks);
/// The trust ratio: 1 if a norm is zero, NaN if one is NaN.
[[nodiscard]] double trust_of(const Rule& rule, const Hyperparameters& with, const Norms& norms);

/// Throws Misuse if the shards belong to other tensors, the rank is out of range, or a layer-wise rule has no gather.
void require_fits(const SharedWork& work, const Rule& rule, std::span<const WeightTensor> tensors);

/// Gathers the squares of all blocks on every rank. `squares[i]` belongs to tensor first + i, in the order of its
/// blocks, and is empty if not needed; this rank's own are in place.
void gather_squares(const SharedWork& work, std::size_t first, std::span<std::vector<Squares>> squares);

}  // namespace syncopate::optim
