// Runs a codec on one core without a network: encodes a gradient, answers as in a group of one rank, and decodes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "syncopate/feedback.hpp"

namespace syncopate {

struct LoopbackOptions {
  std::string codec = "none";                  ///< with its parameter
  FeedbackKind feedback = FeedbackKind::none;  ///< not momentum
  std::size_t elements = 0;                    ///< of the gradient, f32; codecs of matrices receive the most square one
};

/// Times and bytes of one step.
struct LoopbackStep {
  double encode_s = 0;            ///< until the codec has returned the payload of its last round
  double decode_s = 0;            ///< from the answer to that round to the average
  std::uint64_t wire_bytes = 0;   ///< the payloads of all rounds
  std::uint64_t index_bytes = 0;  ///< bytes of these that encode indices of elements
};

/// The steps of one gradient under one codec. Payloads are answered as they are: additive rounds in place, others by a
/// copy of the payload, which no measured time includes. Not thread-safe.
class CodecLoopback final {
 public:
  /// Throws Misuse: an unknown codec, a codec that does not code such a gradient, or feedback that is unsound for it.
  explicit CodecLoopback(const LoopbackOptions& options);
  ~CodecLoopback();
  CodecLoopback(CodecLoopback&&) noexcept;
  CodecLoopback& operator=(CodecLoopback&&) = delete;

  /// Afterwards `gradient` holds the decoded values, and the codec's state is that of the next step.
  LoopbackStep step(std::span<float> gradient);
  [[nodiscard]] std::optional<double> density() const;  ///< if it is a parameter of the codec
  [[nodiscard]] bool selects() const;                   ///< it sends only some elements; the others decode to zero

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Reads the elements once, as fast as this core can, as a reference for the times of a step. Returns the sum of their
/// bits.
std::uint32_t read_once(std::span<const float> elements);

}  // namespace syncopate
