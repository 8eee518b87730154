// Error feedback for codecs: keeps what packets leave out of a gradient, and adds it to the next gradient.
#pragma once

#include <array>

#include "syncopate/codec.hpp"

namespace syncopate::compress {

/// Bytes that feedback keeps for a tensor between steps: the residual, and with momentum correction the velocity. They
/// follow the codec's own state.
[[nodiscard]] std::size_t feedback_bytes(const Feedback& feedback, const Tensor& tensor);

/// The elements v to encode: a tensor of type f32 plus what earlier packets left out.
///
///   residual   v = fl(g + r)                                        r' = fl(v - sent)
///   momentum   u' = fl(fl(m u) + g), v = fl(r + u')                 r' = fl(v - sent), u' = 0 where something was sent
///              (Nesterov: u' = fl(m fl(u + g)), v = fl(fl(r + u') + g))
///   none       v = g
///
/// Seide et al., Interspeech 2014; Lin et al., "Deep gradient compression", ICLR 2018, section 3 (momentum correction,
/// factor masking). r and u are in Tensor::kept, r' and u' in Tensor::next; v is formed in the memory of r'. A NaN or
/// an infinity is sent like any other element and its residual is NaN: the step has failed and must be discarded.
class Compensated final {
 public:
  Compensated(const Tensor& tensor, const Feedback& feedback);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Approximate v[i] (up to rounding) before `form`; used to estimate thresholds.
  [[nodiscard]] float estimate(std::size_t i) const noexcept {
    const float gradient = scale_ * gradient_[i];
    if (residual_ == nullptr) return gradient;
    if (velocity_ == nullptr) return gradient + residual_[i];
    const float again = feedback_.nesterov ? feedback_.momentum * gradient : 0;
    return gradient + residual_[i] + feedback_.momentum * velocity_[i] + again;
  }
  /// Forms the elements of a range. Form every element exactly once before reading it.
  void form(Range range) const;
  /// Forms at most kScratch elements and returns them. The result is in cached memory and valid until the next call.
  static constexpr std::size_t kScratch = 4096;
  [[nodiscard]] const float* formed(Range range) const;
  /// The formed elements; without feedback, the gradient itself.
  [[nodiscard]] const float* elements() const noexcept { return formed_; }

  /// Records that these elements were sent exactly.
  void sent(std::span<const std::uint32_t> indices) const;
  /// Records that these elements were sent as `values`.
  void sent(std::span<const std::uint32_t> indices, std::span<const float> values) const;
  /// Records that every element of the range was sent as `values`. Momentum is not masked.
  void sent(Range range, const float* values) const;
  [[nodiscard]] bool keeps() const noexcept { return residual_ != nullptr; }

 private:
  const Feedback& feedback_;
  std::size_t size_;
  float* gradient_;                  ///< clipped in place
  const float* residual_ = nullptr;  ///< r; null without feedback
  const float* velocity_ = nullptr;  ///< u; null without momentum
  float* formed_;                    ///< v, then r'
  float* next_velocity_ = nullptr;   ///< u'
  float scale_ = 1;                  ///< factor of the gradient (local clipping)
  mutable std::array<float, kScratch> scratch_;
};

/// Adds values that a merge dropped after they were sent to the tensor's residual.
void take_back(const Feedback& feedback, const Tensor& tensor, std::span<const std::uint32_t> indices,
               std::span<const float> values);

}  // namespace syncopate::compress
