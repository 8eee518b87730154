// Products of a matrix with a few vectors, for codecs that send a gradient as two factors of low rank.
#pragma once

#include <cstddef>

namespace syncopate::kernel {

// The same bits on every instruction set: one IEEE operation in f32 per step, in the stated order, nothing fused. No
// alignment needed; what is read must not overlap what is written. Safe from any thread; nothing allocates.

/// A row-major matrix without gaps.
struct Matrix {
  const float* elements;
  std::size_t rows, columns;
};
struct MatrixInto {
  float* elements;
  std::size_t rows, columns;
};

inline constexpr std::size_t kMostRank = 64;

/// `rank` vectors, 1 to 64; each starts `stride` elements after the previous one.
struct Factor {
  const float* vectors;
  std::size_t rank, stride;
};
struct FactorInto {
  float* vectors;
  std::size_t rank, stride;
  operator Factor() const noexcept { return {vectors, rank, stride}; }  // NOLINT(google-explicit-constructor)
};

/// p[k][i] = sum over j of m[i][j] q[k][j]: column j is added to partial sum j mod 16, in order of j; then the 16 are
/// added pairwise (j and j + 8, ... j + 1). One read of m from memory, if 2 rows of it fit into the first cache.
void multiply(const Matrix& m, const Factor& q, const FactorInto& p);
/// q[k][j] += m[i][j] p[k][i], in order of i. One read of m, if 4 rows of it fit.
void multiply_transposed(const Matrix& m, const Factor& p, const FactorInto& q);
/// out[i][j] = sum over k, in order, of p[k][i] q[k][j]; a NaN is the quiet one.
void expand(const Factor& p, const Factor& q, const MatrixInto& out);

/// Sum of a[i] b[i] in f64: element i is added to partial sum i mod 16, in order of i; then pairwise as above.
[[nodiscard]] double dot(const float* a, const float* b, std::size_t count);
/// into[i] = fl(into[i] - fl(factor x[i])).
void subtract_multiple(float* into, float factor, const float* x, std::size_t count);

}  // namespace syncopate::kernel
