// Orthonormal vectors: modified Gram-Schmidt.
#include "compress/factored/orthonormal.hpp"

#include <algorithm>
#include <cmath>

#include "kernel/norm.hpp"

namespace syncopate::compress::factored {

namespace {

constexpr double kLeastShare = 0x1p-16, kLeastNorm = 0x1p-100;

double norm(const float* vector, std::size_t length) { return std::sqrt(kernel::dot(vector, vector, length)); }

}  // namespace

void orthonormalise(const kernel::FactorInto& vectors, std::size_t length) {
  for (std::size_t k = 0; k < vectors.rank; ++k) {
    float* const vector = vectors.vectors + k * vectors.stride;
    const double before = norm(vector, length);
    for (int pass = 0; pass < 2; ++pass)
      for (std::size_t other = 0; other < k; ++other) {
        const float* const direction = vectors.vectors + other * vectors.stride;
        kernel::subtract_multiple(vector, static_cast<float>(kernel::dot(direction, vector, length)), direction,
                                  length);
      }
    const double after = norm(vector, length);
    if (after < std::max(before * kLeastShare, kLeastNorm))
      std::fill_n(vector, length, 0.0F);
    else
      kernel::scale(DType::f32, reinterpret_cast<std::byte*>(vector), length, 1 / after);
  }
}

}  // namespace syncopate::compress::factored
