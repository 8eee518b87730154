// A codec on one core and without a network: a gradient encoded, answered as in a group of one rank, and decoded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace syncopate {

struct LoopbackOptions {
  std::string codec = "none";     ///< with its parameter
  std::string feedback = "none";  ///< "none", "residual"
  std::size_t elements = 0;       ///< of the gradient, f32; codecs that want a matrix see the most square one
};

/// What one step took and sent.
struct LoopbackStep {
  double encode_s = 0;            ///< until the codec has said the payload of its last round
  double decode_s = 0;            ///< from the answer to that round to the average
  std::uint64_t wire_bytes = 0;   ///< the payloads of all rounds
  std::uint64_t index_bytes = 0;  ///< of these: what is no value but says which elements are sent
};

/// The steps of one gradient under one codec. Payloads are answered as they are: additive rounds in place, others by a
/// copy of the payload, which is in no time measured. Not thread-safe.
class CodecLoopback final {
 public:
  /// Throws Misuse: an unknown codec, a codec that does not code such a gradient, feedback that is not sound for it.
  explicit CodecLoopback(const LoopbackOptions& options);
  ~CodecLoopback();
  CodecLoopback(CodecLoopback&&) noexcept;
  CodecLoopback& operator=(CodecLoopback&&) = delete;

  /// Afterwards `gradient` holds what was decoded, and the codec's state is that of the next step.
  LoopbackStep step(std::span<float> gradient);
  [[nodiscard]] std::optional<double> density() const;  ///< of codecs that have one as their parameter
  [[nodiscard]] bool selects() const;                   ///< it sends some elements; the others decode to zero

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Bytes that a parameter server's update or answer of a table of so many elements is expected to take: as they are in
/// tables below WorkerOptions::dense_below. Throws Misuse: an unknown codec, or one whose packets cannot be decoded
/// alone.
[[nodiscard]] std::uint64_t packet_bytes(const std::string& codec, std::size_t elements);

/// Reads the elements once, as fast as this core can: what times of a step are compared with. The sum of their bits.
std::uint32_t read_once(std::span<const float> elements);

}  // namespace syncopate
