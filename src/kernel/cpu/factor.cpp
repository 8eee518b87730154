// Tall-skinny products on the processor's widest vectors: blocks of rows and vectors that stay in registers.
#include "kernel/factor.hpp"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/factor.cpp"
#include "hwy/foreach_target.h"  // this file once more for every instruction set but the last
//
#include "kernel/cpu/lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace syncopate::kernel::HWY_NAMESPACE {

constexpr std::size_t kSums = 16;  ///< partial sums of a product; fixed by factor.hpp
constexpr std::size_t kBlock = 4;  ///< vectors of a factor at a time

using Lanes = hn::CappedTag<float, kSums>;
using VF32 = hn::Vec<Lanes>;

/// The pairwise sum, whose order is fixed.
template <class T>
HWY_INLINE T total(T* sums) {
  for (std::size_t width = kSums / 2; width > 0; width /= 2)
    for (std::size_t j = 0; j < width; ++j) sums[j] += sums[j + width];
  return sums[0];
}

// --- P = M Q
// ----------------------------------------------------------------------------------------------------------

/// Two rows of the matrix and four vectors.
struct Rows {
  const float *a, *b;
};
struct Vectors {
  const float* at[kBlock];
};
struct Sums {
  HWY_ALIGN_MAX float a[kBlock][kSums], b[kBlock][kSums];
};

/// sums += columns [0, columns), a multiple of 16, of both rows times all vectors. Eight sums hide the latency.
HWY_INLINE void add_products(const Rows& rows, const Vectors& q, std::size_t columns, Sums& sums) {
  const Lanes d;
  for (std::size_t s = 0; s < kSums; s += hn::Lanes(d)) {
    VF32 a0 = hn::Load(d, sums.a[0] + s), a1 = hn::Load(d, sums.a[1] + s), a2 = hn::Load(d, sums.a[2] + s),
         a3 = hn::Load(d, sums.a[3] + s), b0 = hn::Load(d, sums.b[0] + s), b1 = hn::Load(d, sums.b[1] + s),
         b2 = hn::Load(d, sums.b[2] + s), b3 = hn::Load(d, sums.b[3] + s);
    for (std::size_t j = s; j < columns; j += kSums) {
      const VF32 a = hn::LoadU(d, rows.a + j), b = hn::LoadU(d, rows.b + j);
      const VF32 q0 = hn::LoadU(d, q.at[0] + j), q1 = hn::LoadU(d, q.at[1] + j);
      const VF32 q2 = hn::LoadU(d, q.at[2] + j), q3 = hn::LoadU(d, q.at[3] + j);
      a0 = hn::Add(a0, hn::Mul(a, q0)), a1 = hn::Add(a1, hn::Mul(a, q1));
      a2 = hn::Add(a2, hn::Mul(a, q2)), a3 = hn::Add(a3, hn::Mul(a, q3));
      b0 = hn::Add(b0, hn::Mul(b, q0)), b1 = hn::Add(b1, hn::Mul(b, q1));
      b2 = hn::Add(b2, hn::Mul(b, q2)), b3 = hn::Add(b3, hn::Mul(b, q3));
    }
    hn::Store(a0, d, sums.a[0] + s), hn::Store(a1, d, sums.a[1] + s);
    hn::Store(a2, d, sums.a[2] + s), hn::Store(a3, d, sums.a[3] + s);
    hn::Store(b0, d, sums.b[0] + s), hn::Store(b1, d, sums.b[1] + s);
    hn::Store(b2, d, sums.b[2] + s), hn::Store(b3, d, sums.b[3] + s);
  }
}

/// The last columns, fewer than 16, padded with zeros.
struct Last {
  float elements[kSums] = {};
  Last(const float* row, std::size_t whole, std::size_t columns) {
    std::memcpy(elements, row + whole, (columns - whole) * sizeof(float));
  }
};

/// Vectors `first` to `first` + 3 of the factor; beyond the last one it is repeated, and its extra sums are dropped.
HWY_INLINE Vectors vectors_of(const Factor& q, std::size_t first) {
  Vectors vectors;
  for (std::size_t k = 0; k < kBlock; ++k) vectors.at[k] = q.vectors + HWY_MIN(first + k, q.rank - 1) * q.stride;
  return vectors;
}

void multiply_block(const Matrix& m, const Factor& q, const FactorInto& p, std::size_t first) {
  const std::size_t whole = m.columns / kSums * kSums;
  const Vectors vectors = vectors_of(q, first);
  const Last l0(vectors.at[0], whole, m.columns), l1(vectors.at[1], whole, m.columns),
      l2(vectors.at[2], whole, m.columns), l3(vectors.at[3], whole, m.columns);
  const Vectors last{{l0.elements, l1.elements, l2.elements, l3.elements}};
  for (std::size_t i = 0; i < m.rows; i += 2) {
    const std::size_t next = HWY_MIN(i + 1, m.rows - 1);
    const Rows rows{m.elements + i * m.columns, m.elements + next * m.columns};
    Sums sums = {};
    add_products(rows, vectors, whole, sums);
    if (whole < m.columns) {
      const Last a(rows.a, whole, m.columns), b(rows.b, whole, m.columns);
      add_products({a.elements, b.elements}, last, kSums, sums);
    }
    for (std::size_t k = 0; k < kBlock && first + k < q.rank; ++k) {
      p.vectors[(first + k) * p.stride + i] = total(sums.a[k]);
      p.vectors[(first + k) * p.stride + next] = total(sums.b[k]);
    }
  }
}

void multiply_lanes(const Matrix& m, const Factor& q, const FactorInto& p) {
  for (std::size_t first = 0; first < q.rank; first += kBlock) multiply_block(m, q, p, first);
}

// --- Q += M^T P
// -------------------------------------------------------------------------------------------------------

/// Elements of P for kRows rows: at[k kRows + r].
struct Weights {
  float at[kMostRank * kBlock];
};

/// Adds kRows (1 or 4) rows from `row` on, weighted, to the vectors: a column's vector of q is loaded and stored
/// once for all of them.
template <std::size_t kRows>
void add_rows(const Matrix& m, std::size_t row, const Weights& weights, const FactorInto& q) {
  const Lanes d;
  const std::size_t lanes = hn::Lanes(d), n = m.columns;
  const float* const from = m.elements + row * n;
  std::size_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    const VF32 m0 = hn::LoadU(d, from + j), m1 = kRows == 1 ? m0 : hn::LoadU(d, from + n + j);
    const VF32 m2 = kRows == 1 ? m0 : hn::LoadU(d, from + 2 * n + j),
               m3 = kRows == 1 ? m0 : hn::LoadU(d, from + 3 * n + j);
    for (std::size_t k = 0; k < q.rank; ++k) {
      const float* const weight = weights.at + k * kRows;
      VF32 sum = hn::Add(hn::LoadU(d, q.vectors + k * q.stride + j), hn::Mul(m0, hn::Set(d, weight[0])));
      if constexpr (kRows > 1) {
        sum = hn::Add(sum, hn::Mul(m1, hn::Set(d, weight[1])));
        sum = hn::Add(sum, hn::Mul(m2, hn::Set(d, weight[2])));
        sum = hn::Add(sum, hn::Mul(m3, hn::Set(d, weight[3])));
      }
      hn::StoreU(sum, d, q.vectors + k * q.stride + j);
    }
  }
  for (; j < n; ++j)
    for (std::size_t k = 0; k < q.rank; ++k)
      for (std::size_t r = 0; r < kRows; ++r)
        q.vectors[k * q.stride + j] += from[r * n + j] * weights.at[k * kRows + r];
}

template <std::size_t kRows>
HWY_INLINE void add_weighted(const Matrix& m, std::size_t row, const Factor& p, const FactorInto& q) {
  Weights weights;
  for (std::size_t k = 0; k < p.rank; ++k)
    for (std::size_t r = 0; r < kRows; ++r) weights.at[k * kRows + r] = p.vectors[k * p.stride + row + r];
  add_rows<kRows>(m, row, weights, q);
}

void multiply_transposed_lanes(const Matrix& m, const Factor& p, const FactorInto& q) {
  std::size_t i = 0;
  for (; i + kBlock <= m.rows; i += kBlock) add_weighted<kBlock>(m, i, p, q);
  for (; i < m.rows; ++i) add_weighted<1>(m, i, p, q);
}

// --- P Q^T
// ------------------------------------------------------------------------------------------------------------

/// kRows (1 or 4) rows of the product from `row` on: a vector of q is loaded once for all of them.
template <std::size_t kRows>
void expand_rows(const Factor& p, const Factor& q, std::size_t row, const MatrixInto& out) {
  const Lanes d;
  const std::size_t lanes = hn::Lanes(d), n = out.columns;
  float* const into = out.elements + row * n;
  std::size_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    const VF32 first = hn::LoadU(d, q.vectors + j);
    const float* weight = p.vectors + row;
    VF32 o0 = hn::Mul(first, hn::Set(d, weight[0])), o1 = o0, o2 = o0, o3 = o0;
    if constexpr (kRows > 1) {
      o1 = hn::Mul(first, hn::Set(d, weight[1]));
      o2 = hn::Mul(first, hn::Set(d, weight[2]));
      o3 = hn::Mul(first, hn::Set(d, weight[3]));
    }
    for (std::size_t k = 1; k < p.rank; ++k) {
      const VF32 v = hn::LoadU(d, q.vectors + k * q.stride + j);
      weight += p.stride;
      o0 = hn::Add(o0, hn::Mul(v, hn::Set(d, weight[0])));
      if constexpr (kRows > 1) {
        o1 = hn::Add(o1, hn::Mul(v, hn::Set(d, weight[1])));
        o2 = hn::Add(o2, hn::Mul(v, hn::Set(d, weight[2])));
        o3 = hn::Add(o3, hn::Mul(v, hn::Set(d, weight[3])));
      }
    }
    hn::StoreU(one_nan(o0), d, into + j);
    if constexpr (kRows > 1) {
      hn::StoreU(one_nan(o1), d, into + n + j);
      hn::StoreU(one_nan(o2), d, into + 2 * n + j);
      hn::StoreU(one_nan(o3), d, into + 3 * n + j);
    }
  }
  for (; j < n; ++j)
    for (std::size_t r = 0; r < kRows; ++r) {
      float sum = p.vectors[row + r] * q.vectors[j];
      for (std::size_t k = 1; k < p.rank; ++k) sum += p.vectors[k * p.stride + row + r] * q.vectors[k * q.stride + j];
      into[r * n + j] = sum == sum ? sum : std::numeric_limits<float>::quiet_NaN();
    }
}

void expand_lanes(const Factor& p, const Factor& q, const MatrixInto& out) {
  std::size_t i = 0;
  for (; i + kBlock <= out.rows; i += kBlock) expand_rows<kBlock>(p, q, i, out);
  for (; i < out.rows; ++i) expand_rows<1>(p, q, i, out);
}

// --- Vectors
// ----------------------------------------------------------------------------------------------------------

double dot_lanes(const float* a, const float* b, std::size_t count) {
  const hn::CappedTag<double, 8> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const std::size_t lanes = hn::Lanes(d), whole = count / kSums * kSums;
  HWY_ALIGN_MAX double sums[kSums];
  for (std::size_t s = 0; s < kSums; s += lanes) {
    auto sum = hn::Zero(d);
    for (std::size_t i = s; i < whole; i += kSums)
      sum =
          hn::Add(sum, hn::Mul(hn::PromoteTo(d, hn::LoadU(narrow, a + i)), hn::PromoteTo(d, hn::LoadU(narrow, b + i))));
    hn::Store(sum, d, sums + s);
  }
  for (std::size_t i = whole; i < count; ++i) sums[i - whole] += double{a[i]} * double{b[i]};
  return total(sums);
}

struct LessMultiple {
  using In = F32;
  using Out = F32;
  float factor;
  HWY_INLINE hn::Vec<Out> operator()(hn::Vec<In> into, hn::Vec<In> x) const {
    return one_nan(hn::Sub(into, hn::Mul(hn::Set(In(), factor), x)));
  }
};

void subtract_multiple_lanes(float* into, float factor, const float* x, std::size_t count) {
  auto* const bytes = reinterpret_cast<std::byte*>(into);
  each(LessMultiple{factor}, bytes, count, static_cast<const std::byte*>(bytes), reinterpret_cast<const std::byte*>(x));
}

}  // namespace syncopate::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncopate::kernel {

HWY_EXPORT(multiply_lanes);
HWY_EXPORT(multiply_transposed_lanes);
HWY_EXPORT(expand_lanes);
HWY_EXPORT(dot_lanes);
HWY_EXPORT(subtract_multiple_lanes);

void multiply(const Matrix& m, const Factor& q, const FactorInto& p) { HWY_DYNAMIC_DISPATCH(multiply_lanes)(m, q, p); }
void multiply_transposed(const Matrix& m, const Factor& p, const FactorInto& q) {
  HWY_DYNAMIC_DISPATCH(multiply_transposed_lanes)(m, p, q);
}
void expand(const Factor& p, const Factor& q, const MatrixInto& out) { HWY_DYNAMIC_DISPATCH(expand_lanes)(p, q, out); }
double dot(const float* a, const float* b, std::size_t count) { return HWY_DYNAMIC_DISPATCH(dot_lanes)(a, b, count); }
void subtract_multiple(float* into, float factor, const float* x, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(subtract_multiple_lanes)(into, factor, x, count);
}

}  // namespace syncopate::kernel
#endif  // HWY_ONCE
