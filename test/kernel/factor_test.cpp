// Products with factors are the stated sums, to the bit, on every instruction set and at every size.
#include "kernel/factor.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "base/random.hpp"
#include "elements.hpp"

namespace syncopate::kernel {
namespace {

using Values = std::vector<float>;

Values random_values(std::size_t count, std::uint64_t seed) {
  const base::CounterRandom random{seed, count};
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(random.uniform(i) - 0.5);
  return values;
}

/// fl(a b), not fused with a sum.
float product(float a, float b) {
  const volatile float rounded = a * b;
  return rounded;
}

template <class T>
T total(T (&sums)[16]) {
  for (const int width : {8, 4, 2, 1})
    for (int j = 0; j < width; ++j) sums[j] += sums[j + width];
  return sums[0];
}

/// Sizes around every block of rows, columns and vectors; strides leave gaps, which must not change.
template <class Check>
void at_every_size(Check check) {
  testing::on_every_target([&](const std::string& target) {
    for (const std::size_t rows : {0, 1, 2, 3, 4, 5, 9})
      for (const std::size_t columns : {1, 3, 15, 16, 17, 33, 100})
        for (const std::size_t rank : {1, 2, 4, 5, 8}) {
          SCOPED_TRACE(::testing::Message() << rows << " x " << columns << ", rank " << rank << " on " << target);
          check(rows, columns, rank);
          if (::testing::Test::HasFatalFailure()) return;
        }
  });
}

constexpr float kGap = 77;

TEST(Multiply, AddsColumnsIntoSixteenPartialSums) {
  at_every_size([](std::size_t rows, std::size_t columns, std::size_t rank) {
    const Values m = random_values(rows * columns, 1), q = random_values(rank * (columns + 3), 2);
    Values p(rank * (rows + 2), kGap);
    multiply({m.data(), rows, columns}, {q.data(), rank, columns + 3}, {p.data(), rank, rows + 2});
    for (std::size_t k = 0; k < rank; ++k)
      for (std::size_t i = 0; i < rows + 2; ++i) {
        float sums[16] = {};
        for (std::size_t j = 0; j < columns && i < rows; ++j)
          sums[j % 16] += product(m[i * columns + j], q[k * (columns + 3) + j]);
        ASSERT_EQ(p[k * (rows + 2) + i], i < rows ? total(sums) : kGap) << k << ", " << i;
      }
  });
}

TEST(MultiplyTransposed, AddsRowsInTheirOrderToWhatIsThere) {
  at_every_size([](std::size_t rows, std::size_t columns, std::size_t rank) {
    const Values m = random_values(rows * columns, 3), p = random_values(rank * (rows + 1), 4);
    Values q = random_values(rank * (columns + 2), 5);
    const Values before = q;
    multiply_transposed({m.data(), rows, columns}, {p.data(), rank, rows + 1}, {q.data(), rank, columns + 2});
    for (std::size_t k = 0; k < rank; ++k)
      for (std::size_t j = 0; j < columns + 2; ++j) {
        float sum = before[k * (columns + 2) + j];
        for (std::size_t i = 0; i < rows && j < columns; ++i) sum += product(m[i * columns + j], p[k * (rows + 1) + i]);
        ASSERT_EQ(q[k * (columns + 2) + j], sum) << k << ", " << j;
      }
  });
}

TEST(Expand, AddsVectorsInTheirOrder) {
  at_every_size([](std::size_t rows, std::size_t columns, std::size_t rank) {
    const Values p = random_values(rank * (rows + 1), 6), q = random_values(rank * (columns + 2), 7);
    Values out(rows * columns + 1, kGap);
    expand({p.data(), rank, rows + 1}, {q.data(), rank, columns + 2}, {out.data(), rows, columns});
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) {
        float sum = product(p[i], q[j]);
        for (std::size_t k = 1; k < rank; ++k) sum += product(p[k * (rows + 1) + i], q[k * (columns + 2) + j]);
        ASSERT_EQ(out[i * columns + j], sum) << i << ", " << j;
      }
    ASSERT_EQ(out.back(), kGap);
  });
}

TEST(Expand, OfWhatIsNoNumberIsTheQuietNan) {
  testing::on_every_target([](const std::string& target) {
    const Values p(2, -std::numeric_limits<float>::quiet_NaN()), q(37, 1.0F);
    Values out(74);
    expand({p.data(), 1, 2}, {q.data(), 1, 37}, {out.data(), 2, 37});
    for (const float value : out) ASSERT_EQ(std::bit_cast<std::uint32_t>(value), 0x7fc00000u) << target;
  });
}

TEST(Dot, IsTheStatedSumOnEveryInstructionSet) {
  testing::on_every_target([](const std::string& target) {
    for (const std::size_t count : testing::kCounts) {
      const Values a = random_values(count, 8), b = random_values(count, 9);
      double sums[16] = {};
      for (std::size_t i = 0; i < count; ++i) sums[i % 16] += double{a[i]} * double{b[i]};
      ASSERT_EQ(dot(a.data(), b.data(), count), total(sums)) << count << " on " << target;
    }
  });
}

TEST(SubtractMultiple, RoundsProductAndDifference) {
  testing::on_every_target([](const std::string& target) {
    for (const std::size_t count : testing::kCounts) {
      const Values x = random_values(count, 10), before = random_values(count, 11);
      Values into = before;
      subtract_multiple(into.data(), 0.3F, x.data(), count);
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(into[i], before[i] - product(0.3F, x[i])) << target;
    }
  });
}

}  // namespace
}  // namespace syncopate::kernel
