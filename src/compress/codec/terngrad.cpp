// TernGrad: each element becomes -1, 0 or 1 times its group's scale, at random and unbiased except for clipping.
// Wen et al., "TernGrad: ternary gradients to reduce communication in distributed deep learning", NeurIPS 2017,
// section 3. Groups of 2560 elements replace layers: the scale fits the elements better, and memory is read once.
// Averages are encoded in 15 levels and without clipping, which would cut a value that only one rank has sent. The
// paper sends sums of N ternary values exactly; three levels would add more error to the average than all ranks
// together.
//
//   c = 2.5 sigma, sigma the root mean square of the group (summed in f32);  u = min(max |x|, c)
//   P(level = sign x) = min(|x|, c) / u, else 0;  averages: u = max |x| / 7, rounded up or down at random
//   size: five levels in a byte, averages in 4 bits: per tensor of n elements 64 ceil(n / 320) + 4 ceil(n / 2560) bytes
//         and 32 ceil(n / 64) + 4 ceil(n / 2560) bytes, of which (N - 1)/N pass a port
#include <algorithm>
#include <cmath>

#include "compress/quantised/coder.hpp"
#include "compress/quantised/levels.hpp"
#include "kernel/quantize.hpp"

namespace syncopate::compress::codec {

namespace {

constexpr double kClip = 2.5;  ///< times sigma

double peak(std::span<const float> group, unsigned highest) {
  return double{kernel::peak(group.data(), group.size())} / highest;
}

/// The squares are those of x / max |x|, so they can be summed in f32. A peak that is too small for a unit or not
/// finite is the unit itself.
double clipped_peak(std::span<const float> group, unsigned) {
  const float most = kernel::peak(group.data(), group.size());
  if (!(most >= 0x1p-100F && std::isfinite(most))) return most;
  const double sum = kernel::scaled_squares(group.data(), group.size(), 1 / most);
  return most * std::min(1.0, kClip * std::sqrt(sum / static_cast<double>(group.size())));
}

quantised::Coding coding(const Settings& settings) {
  constexpr std::size_t group = quantised::kMostGroup;
  return {quantised::level_quantiser({.group = group, .highest = 1, .bits = 0, .unit = clipped_peak}),
          quantised::level_quantiser({.group = group, .highest = 7, .bits = 4, .unit = peak}), settings.feedback};
}

}  // namespace

extern constinit const Codec terngrad = quantised::scattering_codec<coding>({
    .name = "terngrad",
    .summary = "Minus one, zero or one times a scale, at random: 1.6 bits per element, averages 4 bits",
    .source = "Wen et al., NeurIPS 2017",
    .feedback = FeedbackUse::unsound,
});

}  // namespace syncopate::compress::codec
