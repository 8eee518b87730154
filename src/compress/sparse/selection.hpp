// Selection: which elements of a tensor travel, and the exact choice of the largest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compress/feedback.hpp"

namespace syncopate::compress::sparse {

/// Elements of a tensor, by ascending index. Memory is kept from step to step.
class Selection final {
 public:
  [[nodiscard]] std::span<const std::uint32_t> indices() const noexcept { return {indices_.data(), size_}; }
  [[nodiscard]] std::span<const float> values() const noexcept { return {values_.data(), size_}; }
  [[nodiscard]] std::span<float> values() noexcept { return {values_.data(), size_}; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  void clear() noexcept { size_ = 0; }
  /// Adds the elements of `range` whose magnitude (kernel/select.hpp) is at least `least`.
  void add_at_least(std::uint32_t least, const float* elements, Range range);
  void add(std::uint32_t index, float value);
  /// Keeps the `k` elements of the greatest magnitude; of equal ones those of lower index. Zeros are not kept. Returns
  /// the least magnitude that an element behind them needs to belong to the k largest.
  std::uint32_t keep_largest(std::size_t k);

 private:
  void reserve(std::size_t more);

  std::vector<std::uint32_t> indices_;
  std::vector<float> values_;
  std::size_t size_ = 0;
};

/// Forms the tensor and selects exactly its `k` elements of the greatest magnitude; of equal ones those of lower index.
/// Zeros are not selected, so that fewer may be.
///
/// One read of memory as a rule: a threshold that is estimated from a sample, low enough to let a few more than k
/// through; then the largest of these. If it lets fewer than k through, a second pass collects without it. In either
/// pass candidates are cut to the k largest whenever they are far more than k, so that time and memory stay bounded for
/// every distribution and order.
void select_largest(const Compensated& tensor, std::size_t k, Selection& into);

}  // namespace syncopate::compress::sparse
