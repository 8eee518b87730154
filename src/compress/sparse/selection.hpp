// Selection: which elements of a tensor travel, and the exact choice of the largest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "compress/feedback.hpp"

namespace syncopate::compress::sparse {

/// Hands over ranges of so many elements in their order, each short enough to stay in the first cache while it is
/// formed and looked at.
template <class Look>
void each_chunk(std::size_t elements, Look look) {
  constexpr std::size_t kChunk = Compensated::kScratch;
  for (std::size_t begin = 0; begin < elements; begin += kChunk) look(Range{begin, std::min(begin + kChunk, elements)});
}

/// Elements of a tensor, by ascending index. Memory is kept from step to step.
class Selection final {
 public:
  [[nodiscard]] std::span<const std::uint32_t> indices() const noexcept { return {indices_.data(), size_}; }
  [[nodiscard]] std::span<const float> values() const noexcept { return {values_.data(), size_}; }
  [[nodiscard]] std::span<float> values() noexcept { return {values_.data(), size_}; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  void clear() noexcept { size_ = 0; }
  /// Adds those of `elements`, which are a tensor's in this range, whose magnitude (kernel/select.hpp) is at least
  /// `least`.
  void add_at_least(std::uint32_t least, const float* elements, Range range);
  /// Adds the elements of `range` for which wanted(index) holds.
  template <class Wanted>
  void add_where(const float* elements, Range range, Wanted wanted) {
    reserve(range.size());
    for (std::size_t i = range.begin; i < range.end; ++i) {  // whether one is wanted cannot be predicted: no branch
      indices_[size_] = static_cast<std::uint32_t>(i);
      values_[size_] = elements[i];
      size_ += wanted(i) ? 1 : 0;
    }
  }
  void add(std::uint32_t index, float value);
  /// Keeps the elements for which kept(value) holds; it is asked once for each, in their order.
  template <class Kept>
  void keep_where(Kept kept) {
    std::size_t found = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      if (!kept(values_[i])) continue;
      indices_[found] = indices_[i];
      values_[found++] = values_[i];
    }
    size_ = found;
  }
  /// Keeps the first `k` elements, which have the lowest indices.
  void keep_first(std::size_t k) noexcept { size_ = std::min(size_, k); }
  /// Keeps the `k` elements of the greatest magnitude; of equal ones those of lower index. Zeros are not kept. Returns
  /// the least magnitude that an element behind them needs to belong to the k largest.
  std::uint32_t keep_largest(std::size_t k);

 private:
  void reserve(std::size_t more);

  std::vector<std::uint32_t> indices_;
  std::vector<float> values_;
  std::size_t size_ = 0;
};

/// Forms the tensor. Returns the largest magnitude of its elements.
[[nodiscard]] std::uint32_t form_all(const Compensated& tensor);

/// Forms the tensor and selects exactly its `k` elements of the greatest magnitude; of equal ones those of lower index.
/// Zeros are not selected, so that fewer may be.
///
/// One read of memory as a rule: a threshold that is estimated from a sample, low enough to let a few more than k
/// through; then the largest of these. If it lets fewer than k through, a second pass collects without it. In either
/// pass candidates are cut to the k largest whenever they are far more than k, so that time and memory stay bounded for
/// every distribution and order.
void select_largest(const Compensated& tensor, std::size_t k, Selection& into);

}  // namespace syncopate::compress::sparse
