// Orthonormal vectors from given ones, the same bits wherever the given ones are the same.
#pragma once

#include "kernel/factor.hpp"

namespace syncopate::compress::factored {

/// Makes the vectors, each of `length` elements, orthonormal in their order: modified Gram-Schmidt in f32, with dot
/// products in f64 and every projection taken off twice. A vector that is zero, or of which the ones before it leave
/// less than 2^-16 (its rounding errors, not a direction), or that is shorter than 2^-100 becomes zero. A vector that
/// is not finite makes itself and all behind it NaN.
void orthonormalise(const kernel::FactorInto& vectors, std::size_t length);

}  // namespace syncopate::compress::factored
