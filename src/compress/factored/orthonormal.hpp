// Orthonormalisation of vectors: equal input gives equal bits on all ranks.
#pragma once

#include "kernel/factor.hpp"

namespace syncopate::compress::factored {

/// Orthonormalises the vectors, each of `length` elements, in order: modified Gram-Schmidt in f32, with dot products in
/// f64 and every projection subtracted twice. A vector becomes zero if it is zero, if it is shorter than 2^-100, or if
/// the projections leave less than 2^-16 of it (rounding errors, not a direction). If a vector is not finite, it and
/// all later vectors become NaN.
void orthonormalise(const kernel::FactorInto& vectors, std::size_t length);

}  // namespace syncopate::compress::factored
