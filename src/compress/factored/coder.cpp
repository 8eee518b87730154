// Factored coder: processes rows in chunks that fit the cache; the payloads are the factors.
#include "compress/factored/coder.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/random.hpp"
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

namespace {

/// Elements of a matrix that are formed, multiplied or sent at a time; they fit the L2 cache.
constexpr std::size_t kChunk = 65536;

class FactoredCoder final : public Coder {
 public:
  FactoredCoder(std::size_t rank, const Feedback& feedback) : rank_(rank), feedback_(feedback) {}

  [[nodiscard]] Round begin(std::span<const Tensor> tensors, const StepInfo& info, base::Bytes wire) override {
    terms_.clear();
    is_multiplied_ = false;
    auto* next = reinterpret_cast<float*>(wire.data());
    p_ = next;
    for (const Tensor& tensor : tensors) {
      terms_.push_back({tensor, Compensated(tensor, feedback_), {next, rank_, tensor.rows}, {}});
      next += rank_ * tensor.rows;
    }
    q_ = next;
    for (Term& term : terms_) {
      const std::size_t columns = term.tensor.rows == 0 ? 0 : term.tensor.columns;
      term.q = {next, rank_, columns};
      next += rank_ * columns;
      multiply(term, info.step);
    }
    end_ = next;
    return {Combine::additive, Buffer(p_, static_cast<std::size_t>(q_ - p_), DType::f32)};
  }

  [[nodiscard]] std::optional<Round> next(Answer /*answer*/) override {
    if (is_multiplied_) {
      for (const Term& term : terms_) finish(term);
      return std::nullopt;
    }
    is_multiplied_ = true;
    for (Term& term : terms_) multiply_transposed(term);
    return Round{.combine = Combine::additive,
                 .payload = Buffer(q_, static_cast<std::size_t>(end_ - q_), DType::f32),
                 .ends = true};
  }

 private:
  /// A tensor and the positions of its factors in the payloads.
  struct Term {
    Tensor tensor;
    Compensated v;
    kernel::FactorInto p, q;
  };

  static kernel::FactorInto rows_of(const kernel::FactorInto& p, Range rows) {
    return {p.vectors + rows.begin, p.rank, p.stride};
  }

  /// Calls work(rows, elements) for chunks of rows, from top to bottom.
  template <class Work>
  static void each_chunk(const Tensor& tensor, Work work) {
    const std::size_t most = std::max(kChunk / tensor.columns, std::size_t{1});
    for (std::size_t begin = 0; begin < tensor.rows; begin += most) {
      const Range rows{begin, std::min(begin + most, tensor.rows)};
      work(rows, Range{rows.begin * tensor.columns, rows.end * tensor.columns});
    }
  }

  /// P = V Q, with the Q of the last step.
  void multiply(Term& term, std::uint64_t step) const {
    const std::size_t bytes = term.q.rank * term.q.stride * sizeof(float);
    if (bytes == 0) return;
    std::memcpy(term.q.vectors, term.tensor.kept.data(), bytes);
    for (std::size_t k = 0; k < rank_; ++k) draw_if_zero(term, k, step);
    orthonormalise(term.q, term.q.stride);
    each_chunk(term.tensor, [&](Range rows, Range elements) {
      term.v.form(elements);
      kernel::multiply({term.v.elements() + elements.begin, rows.size(), term.tensor.columns}, term.q,
                       rows_of(term.p, rows));
    });
  }

  static void draw_if_zero(const Term& term, std::size_t k, std::uint64_t step) {
    float* const column = term.q.vectors + k * term.q.stride;
    const double square = kernel::dot(column, column, term.q.stride);
    if (square > 0 && std::isfinite(square)) return;
    const base::CounterRandom random{term.tensor.key, step, k};
    for (std::size_t j = 0; j < term.q.stride; ++j) column[j] = static_cast<float>(random.uniform(j) - 0.5);
  }

  /// Q = V^T P; keeps V - P Q^T as the residual.
  void multiply_transposed(Term& term) {
    if (term.tensor.rows == 0) return;
    orthonormalise(term.p, term.p.stride);
    std::fill_n(term.q.vectors, rank_ * term.q.stride, 0.0F);
    each_chunk(term.tensor, [&](Range rows, Range elements) {
      kernel::multiply_transposed({term.v.elements() + elements.begin, rows.size(), term.tensor.columns},
                                  rows_of(term.p, rows), term.q);
    });
    if (!term.v.keeps()) return;
    each_chunk(term.tensor, [&](Range rows, Range elements) {
      sent_.resize(elements.size());
      kernel::expand(rows_of(term.p, rows), term.q, {sent_.data(), rows.size(), term.tensor.columns});
      term.v.sent(elements, sent_.data());
    });
  }

  static void finish(const Term& term) {
    if (term.tensor.rows == 0) return;
    std::memcpy(term.tensor.next.data(), term.q.vectors, term.q.rank * term.q.stride * sizeof(float));
    auto* const values = static_cast<float*>(term.tensor.values.data);
    kernel::expand(term.p, term.q, {values, term.tensor.rows, term.tensor.columns});
  }

  const std::size_t rank_;
  const Feedback feedback_;
  std::vector<Term> terms_;
  float *p_ = nullptr, *q_ = nullptr, *end_ = nullptr;  ///< all P, then all Q
  bool is_multiplied_ = false;                          ///< P has been averaged
  std::vector<float> sent_;
};

}  // namespace

std::unique_ptr<Coder> factored_coder(std::size_t rank, const Feedback& feedback) {
  return std::make_unique<FactoredCoder>(rank, feedback);
}

std::size_t factored_bytes(std::size_t rank, std::span<const Tensor> tensors) {
  std::size_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += rank * tensor.rows * sizeof(float) + q_bytes(rank, tensor);
  return bytes;
}

std::size_t q_bytes(std::size_t rank, const Tensor& tensor) {
  return tensor.rows == 0 ? 0 : rank * tensor.columns * sizeof(float);
}

}  // namespace syncopate::compress::factored
