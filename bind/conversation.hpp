// The classes that a codec's generator uses: the tensors and the step of a conversation, and the rounds it yields.
#pragma once

#include <nanobind/ndarray.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bind.hpp"
#include "syncopate/codec_feedback.hpp"

namespace syncopate::bind {

/// A round as a generator yields it: parts of arrays or bytes, which are copied when the round begins.
struct PythonRound {
  compress::Combine combine = compress::Combine::gather;
  std::vector<nb::ndarray<nb::ro>> parts;  ///< one, or with scatter one for each rank
};

/// One gradient in a conversation, for Python. After `end` its methods throw Misuse. Used with the GIL.
class CodecTensor final {
 public:
  using Floats = nb::ndarray<nb::numpy, float, nb::ndim<1>>;
  using Indices = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  using Values = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;

  CodecTensor(const compress::Tensor& tensor, const compress::Feedback& feedback);

  /// The elements to encode: the gradient, and with feedback what earlier packets left out.
  [[nodiscard]] Floats values() const;
  [[nodiscard]] Floats average() const;  ///< without feedback, the memory of `values`
  [[nodiscard]] Floats kept() const;
  [[nodiscard]] Floats next() const;
  [[nodiscard]] std::size_t rows() const { return own().rows; }
  [[nodiscard]] std::size_t columns() const { return own().columns; }
  [[nodiscard]] std::uint64_t key() const { return own().key; }
  /// No indices: every element; no values: exactly. Throws Misuse for an index or a number of values that does not fit.
  void sent(const std::optional<Indices>& indices, const std::optional<Values>& values);

  /// Throws Misuse with feedback without a call of `sent`.
  void require_sent(const std::string& who) const;
  /// After the last round: as `require_sent`, and throws Misuse if an array is still used.
  void end(const std::string& who);
  void close() { tensor_ = nullptr; }

 private:
  [[nodiscard]] const compress::Tensor& own() const;
  [[nodiscard]] Floats over(const void* data, std::size_t elements) const;
  [[nodiscard]] std::size_t state_elements() const;

  const compress::Tensor* tensor_;
  const compress::Feedback& feedback_;
  const compress::Compensated compensated_;
  bool is_sent_;
  nb::capsule owner_;  ///< of all arrays over memory of the library, so that its references count them
};

/// compress::StepInfo, and the codec's numbers.
struct CodecStep {
  compress::StepInfo info;
  std::vector<double> numbers;
};

}  // namespace syncopate::bind
