// PowerSGD: low-rank matrices are reconstructed, the residual keeps the rest, and factors are equal on all ranks.
#include <cmath>
#include <limits>

#include "base/random.hpp"
#include "compress/coders.hpp"
#include "compress/factored/coder.hpp"

namespace syncopate::compress {
namespace {

using test::Coders;
using test::floats_of;
using test::Shape;
using test::Values;
using test::with_residual;
using Columns = std::vector<std::vector<double>>;  ///< by vector

float uniform(std::uint64_t stream, std::uint64_t i) {
  return static_cast<float>(base::CounterRandom{stream}.uniform(i) - 0.5);
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Classical Gram-Schmidt in f64.
Columns orthonormal(Columns columns) {
  for (std::size_t k = 0; k < columns.size(); ++k) {
    for (std::size_t other = 0; other < k; ++other) {
      const double part = dot(columns[other], columns[k]);
      for (std::size_t i = 0; i < columns[k].size(); ++i) columns[k][i] -= part * columns[other][i];
    }
    const double norm = std::sqrt(dot(columns[k], columns[k]));
    for (double& x : columns[k]) x /= norm;
  }
  return columns;
}

double relative_error(const Values& found, const std::vector<double>& exact) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    error += std::pow(found[i] - exact[i], 2);
    norm += exact[i] * exact[i];
  }
  return std::sqrt(error / norm);
}

/// The sum over k of strength[k] u_k v_k^T, with orthonormal u and v.
std::vector<double> matrix_of(const Shape& shape, const std::vector<double>& strengths) {
  Columns u(strengths.size(), std::vector<double>(shape.rows)), v(strengths.size(), std::vector<double>(shape.columns));
  for (std::size_t k = 0; k < strengths.size(); ++k) {
    for (std::size_t i = 0; i < shape.rows; ++i) u[k][i] = uniform(10 + k, i);
    for (std::size_t j = 0; j < shape.columns; ++j) v[k][j] = uniform(50 + k, j);
  }
  u = orthonormal(u), v = orthonormal(v);
  std::vector<double> matrix(shape.count());
  for (std::size_t k = 0; k < strengths.size(); ++k)
    for (std::size_t i = 0; i < shape.count(); ++i)
      matrix[i] += strengths[k] * u[k][i / shape.columns] * v[k][i % shape.columns];
  return matrix;
}

void fill(Coders& coders, const std::vector<double>& matrix, double factor = 1) {
  coders.fill([&](auto, auto, auto i) { return static_cast<float>(factor * matrix[i]); });
}

TEST(LowRank, BringsMatricesOfItsRankAtOnceWhateverTheirSizeIs) {
  const Shape shape{60, 41};
  const std::vector<double> matrix = matrix_of(shape, {5, 2, 1});
  for (const double factor : {1.0, 1e-25, 1e25}) {
    Coders coders(settings_of("low_rank:3"), {shape}, 2);
    fill(coders, matrix, factor);
    coders.step();
    std::vector<double> exact = matrix;
    for (double& x : exact) x *= factor;
    EXPECT_LT(relative_error(coders.at(1).values, exact), 1e-5) << factor;
  }
}

// One step of algorithm 1 in f64, with the same first Q.
TEST(LowRank, IsTheStatedIteration) {
  const Shape shape{37, 53, 99};
  constexpr std::size_t kRank = 3, kRanks = 3;
  Coders coders(settings_of("low_rank:3"), {shape}, kRanks);
  coders.fill([](auto rank, auto, auto i) { return uniform(rank, i); });
  std::vector<double> mean(shape.count());
  for (std::size_t i = 0; i < shape.count(); ++i)
    for (std::size_t rank = 0; rank < kRanks; ++rank) mean[i] += coders.at(rank).values[i] / double{kRanks};
  Columns q(kRank, std::vector<double>(shape.columns)), p(kRank, std::vector<double>(shape.rows));
  for (std::size_t k = 0; k < kRank; ++k)
    for (std::size_t j = 0; j < shape.columns; ++j) q[k][j] = base::CounterRandom{99, 0, k}.uniform(j) - 0.5;
  q = orthonormal(q);
  for (std::size_t k = 0; k < kRank; ++k)
    for (std::size_t i = 0; i < shape.count(); ++i) p[k][i / shape.columns] += mean[i] * q[k][i % shape.columns];
  p = orthonormal(p);
  std::vector<double> expected(shape.count());
  for (std::size_t k = 0; k < kRank; ++k) {
    std::ranges::fill(q[k], 0.0);
    for (std::size_t i = 0; i < shape.count(); ++i) q[k][i % shape.columns] += mean[i] * p[k][i / shape.columns];
    for (std::size_t i = 0; i < shape.count(); ++i) expected[i] += p[k][i / shape.columns] * q[k][i % shape.columns];
  }
  coders.step();
  EXPECT_LT(relative_error(coders.at(0).values, expected), 1e-5);
  const Values kept = floats_of(coders.at(2).kept);
  ASSERT_EQ(kept.size(), kRank * shape.columns);
  for (std::size_t i = 0; i < kept.size(); ++i)
    EXPECT_NEAR(kept[i], q[i / shape.columns][i % shape.columns], 1e-5) << "Q is what the next step begins with";
}

// Over steps, the error approaches that of the best rank-2 approximation: the omitted singular values.
TEST(LowRank, ApproachesTheBestApproximation) {
  const Shape shape{48, 64};
  const std::vector<double> matrix = matrix_of(shape, {4, 3, 1, 0.5});
  Coders coders(settings_of("low_rank:2"), {shape}, 1);
  double first = 0, last = 0;
  for (int step = 0; step < 25; ++step) {
    fill(coders, matrix);
    coders.step();
    last = relative_error(coders.at(0).values, matrix);
    if (step == 0) first = last;
  }
  const double best = std::sqrt((1 + 0.25) / (16 + 9 + 1 + 0.25));
  EXPECT_NEAR(last, best, 1e-4);
  EXPECT_GT(first, 1.05 * best);
}

// sum of averages + mean residual = sum of mean gradients: the local approximations lose nothing.
TEST(LowRank, KeepsWhatItsOwnFactorsLeaveOut) {
  const std::vector<Shape> shapes{{50, 40, 1}, {64, 147, 2}};
  for (const int ranks : {1, 3}) {
    Coders coders(with_residual("low_rank"), shapes, ranks);
    std::vector<std::vector<double>> balance;
    for (const Shape& shape : shapes) balance.emplace_back(shape.count());
    for (std::uint64_t step = 0; step < 15; ++step) {
      coders.fill([&](auto rank, auto tensor, auto i) { return uniform(step * 100 + rank * 10 + tensor, i); });
      for (std::size_t t = 0; t < shapes.size(); ++t)
        for (std::size_t i = 0; i < balance[t].size(); ++i)
          for (std::size_t rank = 0; rank < coders.size(); ++rank)
            balance[t][i] += coders.at(rank, t).values[i] / double(ranks);
      coders.step();
      for (std::size_t t = 0; t < shapes.size(); ++t)
        for (std::size_t i = 0; i < balance[t].size(); ++i) balance[t][i] -= coders.at(0, t).values[i];
    }
    for (std::size_t t = 0; t < shapes.size(); ++t)
      for (std::size_t i = 0; i < balance[t].size(); ++i) {
        for (std::size_t rank = 0; rank < coders.size(); ++rank) {
          const Values state = floats_of(coders.at(rank, t).kept);
          balance[t][i] -= state[state.size() - balance[t].size() + i] / ranks;
        }
        ASSERT_NEAR(balance[t][i], 0, 2e-5) << ranks << " ranks, " << i;
      }
  }
}

// R_n = V_n - P P^T V_n is orthogonal to the columns of P, which span the average: average^T R_n = 0.
TEST(LowRank, LeavesNothingOfARankInTheDirectionsThatTravelled) {
  const Shape shape{40, 30};
  Coders coders(with_residual("low_rank:2"), {shape}, 3);
  coders.fill([](auto rank, auto, auto i) { return uniform(rank, i); });
  coders.step();
  const Values& average = coders.at(0).values;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    const Values state = floats_of(coders.at(rank).kept);
    const float* const residual = state.data() + 2 * shape.columns;
    for (std::size_t a = 0; a < shape.columns; ++a)
      for (std::size_t b = 0; b < shape.columns; ++b) {
        double sum = 0;
        for (std::size_t i = 0; i < shape.count(); i += shape.columns) sum += average[i + a] * residual[i + b];
        ASSERT_NEAR(sum, 0, 1e-5) << "rank " << rank;
      }
  }
}

TEST(LowRank, EndsWithTheSameBitsOnEveryRank) {
  Coders coders(with_residual("low_rank"), {{50, 40, 1}, {0, 30, 3}, {3, 500, 4}, {9, 11, 2}}, 3);
  for (std::uint64_t step = 0; step < 3; ++step) {
    coders.fill([&](auto rank, auto tensor, auto i) { return uniform(step * 100 + rank * 10 + tensor, i); });
    coders.step();
    for (std::size_t rank = 1; rank < 3; ++rank)
      for (std::size_t t = 0; t < 4; ++t)
        EXPECT_EQ(coders.at(rank, t).values, coders.at(0, t).values) << step << ", " << t;
  }
}

TEST(LowRank, OfZerosIsZeroAndGoesOnAfterwards) {
  const Shape shape{30, 40};
  Coders coders(settings_of("low_rank:2"), {shape}, 2);
  coders.step();
  for (const float value : coders.at(0).values) ASSERT_EQ(value, 0);
  const std::vector<double> matrix = matrix_of(shape, {2, 1});
  fill(coders, matrix);
  coders.step();
  EXPECT_LT(relative_error(coders.at(0).values, matrix), 1e-5);
}

TEST(LowRank, WhatIsNotFiniteOnOneRankIsNotFiniteOnAllAndIsForgotten) {
  const Shape shape{30, 40};
  const std::vector<double> matrix = matrix_of(shape, {2, 1});
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    for (const std::size_t at : {std::size_t{0}, std::size_t{1199}}) {
      Coders coders(settings_of("low_rank:2"), {shape}, 2);
      fill(coders, matrix);
      coders.at(1).values[at] = bad;
      coders.step();
      for (std::size_t rank = 0; rank < 2; ++rank)
        for (const float value : coders.at(rank).values) ASSERT_FALSE(std::isfinite(value)) << bad << " at " << at;
      fill(coders, matrix);
      coders.step();
      EXPECT_LT(relative_error(coders.at(0).values, matrix), 1e-5);
    }
}

TEST(LowRank, CodesMatricesThatItMakesSmallerAndTakesTheStatedBytes) {
  const Settings settings = settings_of("low_rank:4");
  const auto tensor = [](std::size_t rows, std::size_t columns) {
    return Tensor{.values = Buffer(nullptr, rows * columns, DType::f32), .rows = rows, .columns = columns};
  };
  EXPECT_TRUE(is_coded(settings, tensor(64, 147)));
  EXPECT_TRUE(is_coded(settings, tensor(9, 8)));
  EXPECT_FALSE(is_coded(settings, tensor(8, 8))) << "64 elements, and 64 of its factors";
  EXPECT_FALSE(is_coded(settings, tensor(100000, 1)));
  const Tensor tensors[] = {tensor(64, 147), tensor(0, 20), tensor(10, 30)};
  constexpr std::size_t kHeader = 4;  // of a packet alone
  EXPECT_EQ(wire_bytes_of(settings, tensors, true), 4U * 4 * (64 + 147 + 10 + 30) + 2 * kHeader);
  EXPECT_EQ(state_bytes(settings, tensors[0], true, 5), 4U * 4 * 147);
  EXPECT_EQ(state_bytes(settings, tensors[1], true, 5), 0U);
}

TEST(Orthonormal, VectorsStandUprightOnEachOther) {
  constexpr std::size_t kLength = 1000, kRank = 8;
  Values vectors(kRank * kLength);
  // Nearly parallel vectors, which differ by a thousandth.
  for (std::size_t i = 0; i < vectors.size(); ++i) vectors[i] = uniform(1, i % kLength) + 1e-3F * uniform(2, i);
  factored::orthonormalise({vectors.data(), kRank, kLength}, kLength);
  for (std::size_t a = 0; a < kRank; ++a)
    for (std::size_t b = 0; b <= a; ++b)
      EXPECT_NEAR(kernel::dot(vectors.data() + a * kLength, vectors.data() + b * kLength, kLength), a == b ? 1 : 0,
                  1e-6)
          << a << ", " << b;
}

TEST(Orthonormal, VectorsWithoutADirectionOfTheirOwnBecomeZero) {
  Values vectors{1, 2, 2, 0, 0, 0, -2, -4, -4, 0, 1e-35F, 0, 3, 0, 0};
  factored::orthonormalise({vectors.data(), 5, 3}, 3);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_FLOAT_EQ(vectors[i], (Values{1 / 3.0F, 2 / 3.0F, 2 / 3.0F})[i]);
  for (std::size_t i = 3; i < 12; ++i) EXPECT_EQ(vectors[i], 0) << "zero, a multiple, and one too short";
  EXPECT_GT(vectors[12], 0.9F);
  vectors.resize(300);
  for (std::size_t i = 0; i < 100; ++i) vectors[i] = uniform(3, i), vectors[100 + i] = uniform(4, i);
  for (std::size_t i = 0; i < 100; ++i) vectors[200 + i] = 0.3F * vectors[i] - 0.7F * vectors[100 + i];
  factored::orthonormalise({vectors.data(), 3, 100}, 100);
  for (std::size_t i = 200; i < 300; ++i) EXPECT_EQ(vectors[i], 0) << "a sum of others, but for rounding";
  vectors = {1, 0, std::numeric_limits<float>::infinity(), 1, 1, 1};
  factored::orthonormalise({vectors.data(), 3, 2}, 2);
  EXPECT_EQ(vectors[0], 1);
  for (std::size_t i = 2; i < 6; ++i) EXPECT_TRUE(std::isnan(vectors[i])) << i;
}

}  // namespace
}  // namespace syncopate::compress
