// Bisection: selects approximately the largest elements by counting the elements above trial thresholds (MSTopK).
#pragma once

#include "base/random.hpp"
#include "compress/sparse/selection.hpp"

namespace syncopate::compress::sparse {

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
