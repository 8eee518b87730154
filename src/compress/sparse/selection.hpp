// Selections: the elements of a tensor that are sent; the exact selection of the largest, and MSTopK's bisection.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "syncopate/codec_feedback.hpp"

namespace syncopate::compress::sparse {

/// Passes consecutive ranges that cover all elements to `look`. Each fits the L1 cache while it is formed and read.
template <class Look>
void each_chunk(std::size_t elements, Look look) {
  constexpr std::size_t kChunk = Compensated::kScratch;
  for (std::size_t begin = 0; begin < elements; begin += kChunk) look(Range{begin, std::min(begin + kChunk, elements)});
}

/// Elements of a tensor, by ascending index. Memory is reused across steps.
class Selection final {
 public:
  [[nodiscard]] std::span<const std::uint32_t> indices() const noexcept { return {indices_.data(), size_}; }
  [[nodiscard]] std::span<const float> values() const noexcept { return {values_.data(), size_}; }
  [[nodiscard]] std::span<float> values() noexcept { return {values_.data(), size_}; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  void clear() noexcept { size_ = 0; }
  /// Adds the elements whose magnitude (kernel/select.hpp) is at least `least`. `elements` are the tensor's elements in
  /// `range`.
  void add_at_least(std::uint32_t least, const float* elements, Range range);
  /// Adds the elements of `range` for which wanted(index) holds.
  template <class Wanted>
  void add_where(const float* elements, Range range, Wanted wanted) {
    reserve(range.size());
    for (std::size_t i = range.begin; i < range.end; ++i) {  // branch-free: `wanted` is unpredictable
      indices_[size_] = static_cast<std::uint32_t>(i);
      values_[size_] = elements[i];
      size_ += wanted(i) ? 1 : 0;
    }
  }
  void add(std::uint32_t index, float value);
  /// Keeps the elements for which kept(value) holds; calls it once per element, in order.
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
  /// Keeps the `k` elements of the greatest magnitude; ties go to the lower index. Zeros are not kept. Returns the
  /// minimum magnitude that a later element needs to be among the k largest.
  std::uint32_t keep_largest(std::size_t k);

 private:
  void reserve(std::size_t more);

  std::vector<std::uint32_t> indices_;
  std::vector<float> values_;
  std::size_t size_ = 0;
};

/// Forms the tensor. Returns the largest magnitude of its elements.
[[nodiscard]] std::uint32_t form_all(const Compensated& tensor);

/// Forms the tensor and selects exactly the `k` elements of the greatest magnitude; ties go to the lower index. Zeros
/// are not selected, so the selection may have fewer elements.
///
/// Usually reads memory once: collects candidates above a threshold, estimated from a sample, that slightly more than k
/// elements reach, and selects the k largest candidates. If there are fewer than k candidates, a second pass collects
/// without the threshold. Whenever a pass has far more than k candidates, it keeps only the k largest, so time and
/// memory are bounded for every distribution and order.
void select_largest(const Compensated& tensor, std::size_t k, Selection& into);

/// Forms the tensor and selects `k` elements of approximately the greatest magnitude (all nonzero elements if they are
/// fewer). CommLib's Algorithm 1, corrected:
///
///   u = max |v|; l = 0, h = 1; t1 = above everything, t2 = the least above zero; at most 30 times, until c = k:
///     q = (l + h) / 2, t = q u, c = number of |v| >= t
///     c <= k: h = q, t1 = t if c is its largest so far;   c > k: l = q, t2 = t if c is its least so far
///   select all |v| >= t1, and the missing number as a run of those with t2 <= |v| < t1 from a position that `random`
///   draws
///
/// The printed algorithm starts with t1 = 0, so all elements are selected if no threshold leaves 1 to k elements. It
/// starts with l at the mean instead of 0, so at high densities the second set has all elements. The resolution is
/// u / 2^30: with heavy tails, the drawn run is large. NaN and infinity count as larger than any threshold.
///
/// Returns the number of passes over all elements: to form them and find u, one per trial, and to collect.
std::size_t select_by_bisection(const Compensated& tensor, std::size_t k, const base::CounterRandom& random,
                                Selection& into);

}  // namespace syncopate::compress::sparse
