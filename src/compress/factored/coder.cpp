// Factored coder: processes rows in chunks that fit the cache; the payloads are the factors.
#include "compress/factored/coder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/random.hpp"
#include "kernel/norm.hpp"
#include "syncopate/error.hpp"

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

/// A tensor and the positions of its factors in the payloads.
struct Term {
  Tensor tensor;
  Compensated v;
  kernel::FactorInto p, q;
};

kernel::FactorInto rows_of(const kernel::FactorInto& p, Range rows) {
  return {p.vectors + rows.begin, p.rank, p.stride};
}

/// Calls work(rows, elements) for chunks of rows, from top to bottom.
template <class Work>
void each_chunk(std::size_t rows, std::size_t columns, Work work) {
  const std::size_t most = std::max(kChunk / columns, std::size_t{1});
  for (std::size_t begin = 0; begin < rows; begin += most) {
    const Range some{begin, std::min(begin + most, rows)};
    work(some, Range{some.begin * columns, some.end * columns});
  }
}

std::size_t bytes_of(const kernel::FactorInto& factor) { return factor.rank * factor.stride * sizeof(float); }

void draw_if_zero(const Term& term, std::size_t k, std::uint64_t step) {
  float* const column = term.q.vectors + k * term.q.stride;
  const double square = kernel::dot(column, column, term.q.stride);
  if (square > 0 && std::isfinite(square)) return;
  const base::CounterRandom random{term.tensor.key, step, k};
  for (std::size_t j = 0; j < term.q.stride; ++j) column[j] = static_cast<float>(random.uniform(j) - 0.5);
}

/// P = V Q, with the Q of the last step.
void multiply(Term& term, std::uint64_t step) {
  const std::size_t bytes = bytes_of(term.q);
  if (bytes == 0) return;
  std::memcpy(term.q.vectors, term.tensor.kept.data(), bytes);
  for (std::size_t k = 0; k < term.q.rank; ++k) draw_if_zero(term, k, step);
  orthonormalise(term.q, term.q.stride);
  each_chunk(term.tensor.rows, term.tensor.columns, [&](Range rows, Range elements) {
    term.v.form(elements);
    kernel::multiply({term.v.elements() + elements.begin, rows.size(), term.tensor.columns}, term.q,
                     rows_of(term.p, rows));
  });
}

/// Q = V^T P, with P made orthonormal; keeps V - P Q^T as the residual. `sent` is scratch.
void multiply_transposed(Term& term, std::vector<float>& sent) {
  if (term.tensor.rows == 0) return;
  const std::size_t columns = term.tensor.columns;
  orthonormalise(term.p, term.p.stride);
  std::fill_n(term.q.vectors, term.q.rank * term.q.stride, 0.0F);
  each_chunk(term.tensor.rows, columns, [&](Range rows, Range elements) {
    kernel::multiply_transposed({term.v.elements() + elements.begin, rows.size(), columns}, rows_of(term.p, rows),
                                term.q);
  });
  if (!term.v.keeps()) return;
  each_chunk(term.tensor.rows, columns, [&](Range rows, Range elements) {
    sent.resize(elements.size());
    kernel::expand(rows_of(term.p, rows), term.q, {sent.data(), rows.size(), columns});
    term.v.sent(elements, sent.data());
  });
}

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
    for (Term& term : terms_) multiply_transposed(term, sent_);
    return Round{.combine = Combine::additive,
                 .payload = Buffer(q_, static_cast<std::size_t>(end_ - q_), DType::f32),
                 .ends = true};
  }

 private:
  static void finish(const Term& term) {
    if (term.tensor.rows == 0) return;
    std::memcpy(term.tensor.next.data(), term.q.vectors, bytes_of(term.q));
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

using Columns = std::uint32_t;  ///< begins a packet

/// The factors in a packet of a matrix.
struct ReadFactors {
  std::size_t rows = 0, columns = 0;
  std::vector<float> vectors;  ///< P, then Q: copied, because a packet's bytes have any alignment
  kernel::Factor p{}, q{};
};

/// Reads the packet of a matrix of `elements` elements and returns the bytes after it. Throws Corrupt.
base::ConstBytes read_factors(std::size_t rank, std::size_t elements, base::ConstBytes from, ReadFactors& into) {
  Columns columns = 0;
  if (from.size() < sizeof columns) throw Corrupt("a packet of factors ends in its header");
  std::memcpy(&columns, from.data(), sizeof columns);
  if (columns == 0 || elements % columns != 0)
    throw Corrupt(fmt::format("a packet of factors has {} columns for {} elements", columns, elements));
  from = from.subspan(sizeof columns);
  into.columns = columns;
  into.rows = elements / columns;
  const std::size_t bytes = rank * (into.rows + into.columns) * sizeof(float);
  if (from.size() < bytes)
    throw Corrupt(
        fmt::format("{} bytes of factors, of {} of {} x {} elements", from.size(), bytes, into.rows, columns));
  into.vectors.resize(bytes / sizeof(float));
  std::memcpy(into.vectors.data(), from.data(), bytes);
  into.p = {into.vectors.data(), rank, into.rows};
  into.q = {into.vectors.data() + rank * into.rows, rank, into.columns};
  return from.subspan(bytes);
}

/// into += P Q^T / share.
void add_product(const ReadFactors& factors, float share, float* into) {
  std::vector<float> product(std::max(kChunk, factors.columns));
  each_chunk(factors.rows, factors.columns, [&](Range rows, Range elements) {
    const kernel::Factor p{factors.p.vectors + rows.begin, factors.p.rank, factors.p.stride};
    kernel::expand(p, factors.q, {product.data(), rows.size(), factors.columns});
    for (std::size_t i = 0; i < elements.size(); ++i) into[elements.begin + i] += product[i] / share;
  });
}

class OwnFactorsCoder final : public Coder {
 public:
  OwnFactorsCoder(std::size_t rank, const Feedback& feedback) : rank_(rank), feedback_(feedback) {}

  [[nodiscard]] Round begin(std::span<const Tensor> tensors, const StepInfo& info, base::Bytes wire) override {
    tensors_ = tensors;
    ranks_ = info.ranks;
    std::size_t written = 0;
    for (const Tensor& tensor : tensors)
      if (tensor.rows > 0) written += write_packet(tensor, info.step, wire.subspan(written));
    return {.combine = Combine::gather, .payload = Buffer(wire.data(), written, DType::u8), .ends = true};
  }

  [[nodiscard]] std::optional<Round> next(Answer answer) override {
    for (const Tensor& tensor : tensors_)
      std::fill_n(static_cast<float*>(tensor.values.data), tensor.values.count, 0.0F);
    ReadFactors factors;
    for (base::ConstBytes packets : answer.packets) {
      for (const Tensor& tensor : tensors_) {
        if (tensor.rows == 0) continue;
        packets = read_factors(rank_, tensor.values.count, packets, factors);
        add_product(factors, static_cast<float>(ranks_), static_cast<float*>(tensor.values.data));
      }
      if (!packets.empty()) throw Corrupt("bytes follow the last packet of factors of a rank");
    }
    return std::nullopt;
  }

  void add(base::ConstBytes packet, std::span<float> into) const override {
    if (into.empty() && packet.empty()) return;
    ReadFactors factors;
    if (!read_factors(rank_, into.size(), packet, factors).empty()) throw Corrupt("bytes follow a packet of factors");
    add_product(factors, 1, into.data());
  }

 private:
  std::size_t write_packet(const Tensor& tensor, std::uint64_t step, base::Bytes into) {
    const auto columns = static_cast<Columns>(tensor.columns);
    std::memcpy(into.data(), &columns, sizeof columns);
    auto* const p = reinterpret_cast<float*>(into.data() + sizeof columns);
    Term term{tensor,
              Compensated(tensor, feedback_),
              {p, rank_, tensor.rows},
              {p + rank_ * tensor.rows, rank_, tensor.columns}};
    multiply(term, step);
    multiply_transposed(term, sent_);
    std::memcpy(tensor.next.data(), term.q.vectors, bytes_of(term.q));
    return sizeof columns + bytes_of(term.p) + bytes_of(term.q);
  }

  const std::size_t rank_;
  const Feedback feedback_;
  std::span<const Tensor> tensors_;
  int ranks_ = 1;
  std::vector<float> sent_;
};

}  // namespace

std::unique_ptr<Coder> factored_coder(std::size_t rank, const Feedback& feedback) {
  return std::make_unique<FactoredCoder>(rank, feedback);
}

std::unique_ptr<Coder> own_factors_coder(std::size_t rank, const Feedback& feedback) {
  return std::make_unique<OwnFactorsCoder>(rank, feedback);
}

std::size_t factored_bytes(std::size_t rank, std::span<const Tensor> tensors) {
  std::size_t bytes = 0;
  for (const Tensor& tensor : tensors)
    if (tensor.rows > 0) bytes += sizeof(Columns) + rank * tensor.rows * sizeof(float) + q_bytes(rank, tensor);
  return bytes;
}

std::size_t q_bytes(std::size_t rank, const Tensor& tensor) {
  return tensor.rows == 0 ? 0 : rank * tensor.columns * sizeof(float);
}

}  // namespace syncopate::compress::factored
