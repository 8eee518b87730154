// Feedback: what a codec's packets leave out of a gradient is kept, and added to the next one.
#pragma once

#include <array>
#include <string>

#include "compress/round.hpp"

namespace syncopate::compress {

struct Feedback {
  enum class Kind : std::uint8_t {
    none,      ///< what a packet leaves out is lost
    residual,  ///< it is added to the next gradient
    momentum,  ///< momentum correction: the momentum is accumulated before the selection, not by the optimizer
  };
  Kind kind = Kind::none;
  float momentum = 0;     ///< m of momentum correction, in (0, 1)
  bool nesterov = false;  ///< of momentum correction
  double clip_norm = 0;   ///< > 0: local clipping, every gradient to this L2 norm before it is accumulated

  [[nodiscard]] std::string text() const;  ///< "residual"; "momentum 0.9 nesterov, clipped to 1"
  friend bool operator==(const Feedback&, const Feedback&) = default;
};

/// Bytes that feedback keeps for a tensor between steps, behind what its codec keeps: the residual, and under momentum
/// correction the velocity.
[[nodiscard]] std::size_t feedback_bytes(const Feedback& feedback, const Tensor& tensor);

/// A tensor of type f32 with what earlier packets left out of it: the elements that are to be encoded.
///
///   residual   v = fl(g + r)                                        r' = fl(v - sent)
///   momentum   u' = fl(fl(m u) + g), v = fl(r + u')                 r' = fl(v - sent), u' = 0 where something was sent
///              (Nesterov: u' = fl(m fl(u + g)), v = fl(fl(r + u') + g))
///   none       v = g
///
/// Seide et al., Interspeech 2014; Lin et al., "Deep gradient compression", ICLR 2018, section 3 (momentum correction,
/// factor masking). r and u are in Tensor::kept, r' and u' in Tensor::next; v is formed where r' will be. A NaN or an
/// infinity is sent like any other element, and its residual is NaN: the step has failed, and is to be discarded.
class Compensated final {
 public:
  Compensated(const Tensor& tensor, const Feedback& feedback);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// An element's v up to rounding, before it is formed; to estimate thresholds with.
  [[nodiscard]] float estimate(std::size_t i) const noexcept {
    const float gradient = scale_ * gradient_[i];
    if (residual_ == nullptr) return gradient;
    if (velocity_ == nullptr) return gradient + residual_[i];
    const float again = feedback_.nesterov ? feedback_.momentum * gradient : 0;
    return gradient + residual_[i] + feedback_.momentum * velocity_[i] + again;
  }
  /// Forms the elements of a range. Every element is formed once before it is read.
  void form(Range range) const;
  /// The same for at most kScratch elements, and returns them: where they lie in a cache, until the next call.
  static constexpr std::size_t kScratch = 4096;
  [[nodiscard]] const float* formed(Range range) const;
  /// The elements. Without feedback they are the gradient itself.
  [[nodiscard]] const float* elements() const noexcept { return formed_; }

  /// These elements were sent as they are.
  void sent(std::span<const std::uint32_t> indices) const;
  /// These elements were sent as these values.
  void sent(std::span<const std::uint32_t> indices, std::span<const float> values) const;
  /// Every element of the range was sent as these values. Momentum is not masked.
  void sent(Range range, const float* values) const;
  [[nodiscard]] bool keeps() const noexcept { return residual_ != nullptr; }

 private:
  const Feedback& feedback_;
  std::size_t size_;
  const float* gradient_;
  const float* residual_ = nullptr;  ///< r; null without feedback
  const float* velocity_ = nullptr;  ///< u; null without momentum
  float* formed_;                    ///< v, then r'
  float* next_velocity_ = nullptr;   ///< u'
  float scale_ = 1;                  ///< of the gradient, by local clipping
  mutable std::array<float, kScratch> scratch_;
};

/// After its elements were sent: adds values that travel no further to what the tensor's packets have left out.
void take_back(const Feedback& feedback, const Tensor& tensor, std::span<const std::uint32_t> indices,
               std::span<const float> values);

}  // namespace syncopate::compress
