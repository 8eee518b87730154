// Norms of a tensor in fixed blocks: equal bits, however the blocks are divided over threads or ranks.
#pragma once

#include <cstddef>
#include <span>

#include "optim/rule.hpp"

namespace syncopate::optim {

/// Elements of a block; the last one of a tensor may have fewer. Part of the law of layer-wise results: another length
/// changes the order of summation. Weights, gradient and two states of a block are 64 KiB.
inline constexpr std::size_t kBlock = 4096;

[[nodiscard]] constexpr std::size_t blocks_of(std::size_t elements) noexcept {
  return (elements + kBlock - 1) / kBlock;
}

/// The squared norms of one block.
struct Squares {
  double weights = 0, direction = 0;
};

/// The squares of one block, each as kernel/norm.hpp defines them.
[[nodiscard]] Squares squares_of(const Part& block);
/// The norms of a tensor from the squares of all its blocks, summed in the order of the blocks in f64.
[[nodiscard]] Norms norms_of(std::span<const Squares> blocks);
/// The trust ratio: 1 if a norm is zero, NaN if one is NaN.
[[nodiscard]] double trust_of(const Rule& rule, const Hyperparameters& with, const Norms& norms);

}  // namespace syncopate::optim
