// Norms of a tensor in fixed blocks: equal bits, however the blocks are divided over threads or ranks.
#pragma once

#include <cstddef>
#include <span>

#include "optim/rule.hpp"

namespace syncopate::optim {

/// Elements of a block; the last one of a tensor may have fewer. The law of every layer-wise result: another length is
/// another order of summation. Weights, gradient and two states of a block are 64 KiB.
inline constexpr std::size_t kBlock = 4096;

[[nodiscard]] constexpr std::size_t blocks_of(std::size_t elements) noexcept {
  return (elements + kBlock - 1) / kBlock;
}

/// Of one block: the squares of the norms.
struct Squares {
  double weights = 0, direction = 0;
};

/// The squares of one block, each as kernel/norm.hpp defines them.
[[nodiscard]] Squares squares_of(const Part& block);
/// Of a tensor, from the squares of all its blocks: their sum, in the order of the blocks, in f64.
[[nodiscard]] Norms norms_of(std::span<const Squares> blocks);
/// 1 where a norm is zero; NaN where one is NaN.
[[nodiscard]] double trust_of(const Rule& rule, const Hyperparameters& with, const Norms& norms);

}  // namespace syncopate::optim
