// Feedback: forms the elements to encode, and keeps what was not sent.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compress/codec.hpp"
#include "kernel/norm.hpp"
#include "kernel/reduce.hpp"
#include "kernel/stream.hpp"
#include "syncopate/codec_feedback.hpp"

namespace syncopate::compress {

namespace {

/// Vectors that are kept per tensor: the residual, and with momentum the velocity.
std::size_t vectors_of(const Feedback& feedback) {
  switch (feedback.kind) {
    case Feedback::Kind::none:
      return 0;
    case Feedback::Kind::residual:
      return 1;
    default:
      return 2;
  }
}

const std::byte* bytes(const float* elements) { return reinterpret_cast<const std::byte*>(elements); }
std::byte* bytes(float* elements) { return reinterpret_cast<std::byte*>(elements); }

/// into = fl(a + b).
void add(float* into, const float* a, const float* b, std::size_t count) {
  kernel::combine({.dtype = DType::f32}, bytes(into), {bytes(a), bytes(b)}, count);
}

void scale(float* into, std::size_t count, float factor) { kernel::scale(DType::f32, bytes(into), count, factor); }

}  // namespace

std::string text_of(const Feedback& feedback) {
  if (feedback.kind == Feedback::Kind::none) return "none";
  std::string text =
      feedback.kind == Feedback::Kind::residual ? "residual" : fmt::format("momentum {}", feedback.momentum);
  if (feedback.nesterov) text += " nesterov";
  if (feedback.clip_norm > 0) text += fmt::format(", clipped to {}", feedback.clip_norm);
  return text;
}

std::size_t feedback_bytes(const Feedback& feedback, const Tensor& tensor) {
  return vectors_of(feedback) * tensor.values.count * sizeof(float);
}

Compensated::Compensated(const Tensor& tensor, const Feedback& feedback)
    : feedback_(feedback),
      size_(tensor.values.count),
      gradient_(static_cast<float*>(tensor.values.data)),
      formed_(static_cast<float*>(tensor.values.data)) {
  if (feedback.clip_norm > 0) {
    const double norm = std::sqrt(kernel::squared_norm(DType::f32, bytes(gradient_), size_));
    if (norm > feedback.clip_norm) scale_ = static_cast<float>(feedback.clip_norm / norm);
  }
  const std::size_t state = feedback_bytes(feedback, tensor);
  if (state == 0) return;
  // The codec's own state comes first.
  residual_ = reinterpret_cast<const float*>(tensor.kept.last(state).data());
  formed_ = reinterpret_cast<float*>(tensor.next.last(state).data());
  if (feedback.kind != Feedback::Kind::momentum) return;
  velocity_ = residual_ + size_;
  next_velocity_ = formed_ + size_;
}

void Compensated::form(Range range) const {
  const std::size_t at = range.begin, count = range.size();
  // Clips the gradient in place: the average overwrites it later.
  if (scale_ != 1) scale(gradient_ + at, count, scale_);
  if (residual_ == nullptr) return;
  if (velocity_ == nullptr) return add(formed_ + at, gradient_ + at, residual_ + at, count);
  float* const velocity = next_velocity_ + at;
  if (feedback_.nesterov) {
    add(velocity, velocity_ + at, gradient_ + at, count);
    scale(velocity, count, feedback_.momentum);
  } else {
    std::memcpy(velocity, velocity_ + at, count * sizeof(float));
    scale(velocity, count, feedback_.momentum);
    add(velocity, velocity, gradient_ + at, count);
  }
  add(formed_ + at, residual_ + at, velocity, count);
  if (feedback_.nesterov) add(formed_ + at, formed_ + at, gradient_ + at, count);
}

// The residual is read only in the next step, so it must not displace the gradient from the caches.
const float* Compensated::formed(Range range) const {
  if (residual_ == nullptr || velocity_ != nullptr || scale_ != 1) {
    form(range);
    return formed_ + range.begin;
  }
  add(scratch_.data(), gradient_ + range.begin, residual_ + range.begin, range.size());
  kernel::stream(formed_ + range.begin, scratch_.data(), range.size());
  return scratch_.data();
}

void Compensated::sent(std::span<const std::uint32_t> indices) const {
  if (residual_ == nullptr) return;
  for (const std::uint32_t i : indices) formed_[i] -= formed_[i];
  if (next_velocity_ == nullptr) return;
  for (const std::uint32_t i : indices) next_velocity_[i] = 0;
}

void Compensated::sent(std::span<const std::uint32_t> indices, std::span<const float> values) const {
  if (residual_ == nullptr) return;
  for (std::size_t i = 0; i < indices.size(); ++i) formed_[indices[i]] -= values[i];
  if (next_velocity_ == nullptr) return;
  for (const std::uint32_t i : indices) next_velocity_[i] = 0;
}

void Compensated::sent(Range range, const float* values) const {
  if (residual_ == nullptr) return;
  for (std::size_t i = 0; i < range.size(); ++i) formed_[range.begin + i] -= values[i];
}

void take_back(const Feedback& feedback, const Tensor& tensor, std::span<const std::uint32_t> indices,
               std::span<const float> values) {
  const std::size_t state = feedback_bytes(feedback, tensor);
  if (state == 0) return;
  auto* const residual = reinterpret_cast<float*>(tensor.next.last(state).data());
  for (std::size_t i = 0; i < indices.size(); ++i) residual[indices[i]] += values[i];
}

}  // namespace syncopate::compress
