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

/// The squares of all blocks of consecutive tensors, block after block.
class BlockSquares final {
 public:
  /// `elements`: of each tensor; 0 if its norms are not needed.
  explicit BlockSquares(std::span<const std::size_t> elements);
  [[nodiscard]] std::size_t tensors() const noexcept { return begins_.size() - 1; }
  /// The first block of a tensor.
  [[nodiscard]] std::size_t begin(std::size_t tensor) const { return begins_[tensor]; }
  [[nodiscard]] std::span<Squares> of(std::size_t tensor) {
    return all().subspan(begins_[tensor], begins_[tensor + 1] - begins_[tensor]);
  }
  [[nodiscard]] std::span<Squares> all() noexcept { return squares_; }

 private:
  std::vector<std::size_t> begins_;  ///< of each tensor, and the end
  std::vector<Squares> squares_;
};

/// The squares of one block, each as kernel/norm.hpp defines them.
[[nodiscard]] Squares squares_of(const TensorSlice& block);
/// The norms of a tensor from the squares of all its blocks, summed in the order of the blocks in f64.
[[nodiscard]] Norms norms_of(std::span<const Squares> blocks);
/// The trust ratio: 1 if a norm is zero, NaN if one is NaN.
[[nodiscard]] double trust_of(const Rule& rule, const Hyperparameters& with, const Norms& norms);

/// Throws Misuse if the shards belong to other tensors, the rank is out of range, or a layer-wise rule has no gather.
void require_fits(const SharedUpdate& work, const Rule& rule, std::span<const WeightTensor> tensors);

/// Gathers the squares of all blocks on every rank, from those of its shards. `squares` begins with tensor `first`.
void gather_squares(const SharedUpdate& work, std::size_t first, BlockSquares& squares);

}  // namespace syncopate::optim
