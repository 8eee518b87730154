// Bisection: about the largest elements of a tensor, by counting how many reach trial thresholds (MSTopK).
#pragma once

#include "base/random.hpp"
#include "compress/sparse/selection.hpp"

namespace syncopate::compress::sparse {

/// Forms the tensor and selects `k` of its elements (all that are not zero, if those are fewer): about those of the
/// greatest magnitude. CommLib's Algorithm 1, corrected:
///
///   u = max |v|; l = 0, h = 1; t1 = above everything, t2 = the least above zero; at most 30 times, until c = k:
///     q = (l + h) / 2, t = q u, c = how many |v| >= t
///     c <= k: h = q, t1 = t if c is its largest so far;   c > k: l = q, t2 = t if c is its least so far
///   all |v| >= t1, and of those with t2 <= |v| < t1 as many neighbours as are missing, from a place drawn by `random`
///
/// As printed it starts with t1 = 0, by which all elements travel where no threshold lets 1 to k through; and at the
/// mean instead of 0, so that at high densities the second set is everything. Its resolution is u / 2^30: of heavy
/// tails the drawn part is large. NaN and infinity count as larger than any threshold.
///
/// Returns how many times all elements were read: to form them and to find u, for every trial, and to collect.
std::size_t select_by_bisection(const Compensated& tensor, std::size_t k, const base::CounterRandom& random,
                                Selection& into);

}  // namespace syncopate::compress::sparse
