// int8: rounds each element to one of 255 levels, scaled by its group's largest magnitude; feedback keeps the error.
// Dettmers, "8-bit approximations for parallelism in deep learning", ICLR 2016, with uniform levels; feedback as in
// Karimireddy et al., ICML 2019. The scale per group makes it contractive: |x - Q(x)| <= max |x| / 254.
//
//   u = max |x| / 127 over a group of 512;  level = nearest even to x / u
//   size: per tensor of n elements 64 ceil(n / 64) + 4 ceil(n / 512) bytes; 2 (N - 1)/N of them pass a port
#include "compress/quantised/coder.hpp"
#include "compress/quantised/levels.hpp"
#include "kernel/quantize.hpp"

namespace syncopate::compress::codec {

namespace {

double unit(std::span<const float> group, unsigned highest) {
  return double{kernel::peak(group.data(), group.size())} / highest;
}

quantised::Coding coding(const Settings& settings) {
  const auto quantiser = [] {
    return quantised::level_quantiser({.highest = 127, .bits = 8, .is_stochastic = false, .unit = unit});
  };
  return {quantiser(), quantiser(), settings.feedback};
}

}  // namespace

extern constinit const Codec int8 = quantised::scattering_codec<coding>({
    .name = "int8",
    .summary = "The nearest of 255 levels, scaled by the largest of 512 elements, with a residual",
    .source = "Dettmers, ICLR 2016; Karimireddy et al., ICML 2019",
    .feedback = FeedbackUse::sound,
});

}  // namespace syncopate::compress::codec
