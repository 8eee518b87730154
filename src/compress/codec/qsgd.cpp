// QSGD: rounds each element stochastically to a level of its group's L2 norm; the expectation is the element.
// Alistarh et al., "QSGD: communication-efficient SGD via gradient quantization and encoding", NeurIPS 2017,
// equation 4.
//
//   s = 2^(BITS - 1) - 1,  u = ||x|| / s over a group of 512;  level = x / u, rounded up or down at random;  E[level u]
//   = x Limit: a group with u below 2^-100 (8e-31) is sent as zeros, which is biased. variance of a group: at most
//   min(n / s^2, sqrt(n) / s) ||x||^2; the second round adds the same bound for the average size: per tensor of n
//   elements 8 BITS ceil(n / 64) + 4 ceil(n / 512) bytes; 2 (N - 1)/N of them pass a port
#include <cmath>

#include "compress/quantised/coder.hpp"
#include "compress/quantised/levels.hpp"
#include "kernel/norm.hpp"

namespace syncopate::compress::codec {

namespace {

constexpr base::shelf::Parameter kBits[] = {{"bits", 1, 8, true}};

double unit(std::span<const float> group, unsigned highest) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(group.data());
  return std::sqrt(kernel::squared_norm(DType::f32, bytes, group.size())) / highest;
}

std::unique_ptr<quantised::Quantiser> quantiser(const Settings& settings) {
  const auto bits = static_cast<unsigned>(settings.numbers[0]);
  const auto highest = static_cast<std::uint8_t>((1U << (bits - 1)) - 1);
  return quantised::level_quantiser({.highest = highest, .bits = bits, .unit = unit});
}

}  // namespace

extern constinit const Codec qsgd = quantised::scattering_codec<quantiser>({
    .name = "qsgd",
    .summary = "Levels of the L2 norm of 512 elements, at random, unbiased for units of at least 2^-100: `qsgd:BITS`",
    .source = "Alistarh et al., NeurIPS 2017",
    .parameter = "4",
    .parameters = kBits,
    .feedback = FeedbackUse::unsound,
});

}  // namespace syncopate::compress::codec
