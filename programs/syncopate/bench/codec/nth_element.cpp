// The contender of selections, compiled with the optimisation of a user's program (CMakeLists.txt of this program).
#include "bench/codec/nth_element.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

namespace syncopate::tools::bench {

namespace {

using SteadyClock = std::chrono::steady_clock;

double seconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

}  // namespace

NthElement::NthElement(std::size_t elements, std::size_t selected, bool keeps_residual)
    : order_(elements), residual_(keeps_residual ? elements : 0), packet_(selected) {}

void NthElement::encode(std::span<const float> gradient) {
  const bool keeps = !residual_.empty();
  for (std::size_t i = 0; i < residual_.size(); ++i) residual_[i] += gradient[i];
  const std::span<const float> elements = keeps ? residual_ : gradient;
  std::iota(order_.begin(), order_.end(), 0U);
  const auto end = order_.begin() + static_cast<std::ptrdiff_t>(packet_.size());
  std::nth_element(order_.begin(), end, order_.end(), [elements](std::uint32_t a, std::uint32_t b) {
    return std::fabs(elements[a]) > std::fabs(elements[b]);
  });
  std::transform(order_.begin(), end, packet_.begin(), [elements](std::uint32_t i) { return Pair{i, elements[i]}; });
  if (!keeps) return;
  for (const Pair& pair : packet_) residual_[pair.index] = 0;
}

void NthElement::decode(std::span<float> gradient) const {
  std::ranges::fill(gradient, 0.0F);
  for (const Pair& pair : packet_) gradient[pair.index] += pair.value;
}

LoopbackStep NthElement::step(std::span<float> gradient) {
  LoopbackStep step{.wire_bytes = packet_.size() * sizeof(Pair), .index_bytes = packet_.size() * sizeof(std::uint32_t)};
  const auto begin = SteadyClock::now();
  encode(gradient);
  step.encode_s = seconds_since(begin);
  const auto encoded = SteadyClock::now();
  decode(gradient);
  step.decode_s = seconds_since(encoded);
  return step;
}

}  // namespace syncopate::tools::bench
