// QSGD: rounds each element stochastically to a level of its group's largest element; the expectation is the element.
// Alistarh et al., "QSGD: communication-efficient SGD via gradient quantization and encoding", NeurIPS 2017, equation
// 4, scaled by the maximum as in their experiments (section 5), not by the L2 norm, whose levels few elements reach.
//
//   s = 2^(BITS - 1) - 1,  u = max |x| / s over a group of 512;  level = x / u, rounded up or down at random
//   E[level u] = x; the variance of an element is at most u^2 / 4, and the second round adds as much for the average
//   limit: a group with u below 2^-100 (8e-31) is sent as zeros, which is biased
//   size: per tensor of n elements 8 BITS ceil(n / 64) + 4 ceil(n / 512) bytes; 2 (N - 1)/N of them pass a port
#include "compress/quantised/coder.hpp"
#include "compress/quantised/levels.hpp"
#include "kernel/quantize.hpp"

namespace syncopate::compress::codec {

namespace {

constexpr Parameter kBits[] = {{"bits", 1, 8, true}};

double unit(std::span<const float> group, unsigned highest) {
  return double{kernel::peak(group.data(), group.size())} / highest;
}

quantised::Coding coding(const Settings& settings) {
  const auto bits = static_cast<unsigned>(settings.numbers[0]);
  const auto highest = static_cast<std::uint8_t>((1U << (bits - 1)) - 1);
  const auto quantiser = [&] { return quantised::level_quantiser({.highest = highest, .bits = bits, .unit = unit}); };
  return {quantiser(), quantiser(), settings.feedback};
}

}  // namespace

extern constinit const Codec qsgd = quantised::scattering_codec<coding>({
    .name = "qsgd",
    .summary = "Levels of the largest of 512 elements, at random, unbiased for units of at least 2^-100: `qsgd:BITS`",
    .source = "Alistarh et al., NeurIPS 2017",
    .parameter = "4",
    .parameters = kBits,
    .feedback = FeedbackUse::unsound,
});

}  // namespace syncopate::compress::codec
