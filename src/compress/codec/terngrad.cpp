// TernGrad: each element becomes -1, 0 or 1 times its group's scale, at random and unbiased except for clipping.
// Wen et al., "TernGrad: ternary gradients to reduce communication in distributed deep learning", NeurIPS 2017,
// section 3. Groups of 2560 elements replace layers: the scale fits the elements better, and memory is read once.
// Averages are encoded again without clipping, which would cut a value that only one rank has sent.
//
//   c = 2.5 sigma, sigma the root mean square of the group;  u = min(max |x|, c)
//   P(level = sign x) = min(|x|, c) / u, else 0
//   size: five levels in a byte: per tensor of n elements 64 ceil(n / 320) + 4 ceil(n / 2560) bytes, of which
//         2 (N - 1)/N pass a port
#include <algorithm>
#include <cmath>

#include "compress/quantised/coder.hpp"
#include "compress/quantised/levels.hpp"
#include "kernel/norm.hpp"
#include "kernel/quantize.hpp"

namespace syncopate::compress::codec {

namespace {

constexpr double kClip = 2.5;  ///< times sigma

double peak(std::span<const float> group, unsigned /*highest*/) {
  return double{kernel::peak(group.data(), group.size())};
}

double clipped_peak(std::span<const float> group, unsigned highest) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(group.data());
  const double sum = kernel::squared_norm(DType::f32, bytes, group.size());
  const double clip = kClip * std::sqrt(sum / static_cast<double>(group.size()));
  return std::isfinite(clip) ? std::min(clip, peak(group, highest)) : clip;
}

std::unique_ptr<quantised::Quantiser> quantiser(double (*unit)(std::span<const float> group, unsigned highest)) {
  return quantised::level_quantiser({.group = quantised::kMostGroup, .highest = 1, .bits = 0, .unit = unit});
}

std::size_t wire_bytes(const Settings& /*settings*/, std::span<const Tensor> tensors) {
  return quantised::scattering_bytes(*quantiser(clipped_peak), tensors);
}

std::unique_ptr<Coder> coder(const Settings& settings) {
  return quantised::scattering_coder({quantiser(clipped_peak), quantiser(peak), settings.feedback});
}

}  // namespace

extern constinit const Codec terngrad{
    .name = "terngrad",
    .summary = "Minus one, zero or one times a scale, at random: 1.6 bits per element",
    .source = "Wen et al., NeurIPS 2017",
    .combines = {.gather = true, .scatter = true},
    .one_round = false,
    .feedback = FeedbackUse::unsound,
    .takes = takes_f32,
    .wire_bytes = wire_bytes,
    .coder = coder,
};

}  // namespace syncopate::compress::codec
