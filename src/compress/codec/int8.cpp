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

std::unique_ptr<quantised::Quantiser> quantiser(const Settings& /*settings*/) {
  return quantised::level_quantiser({.highest = 127, .bits = 8, .is_stochastic = false, .unit = unit});
}

bool takes(DType dtype) { return dtype == DType::f32; }

std::size_t wire_bytes(const Settings& settings, std::span<const Tensor> tensors) {
  return quantised::scattering_bytes(*quantiser(settings), tensors);
}

std::unique_ptr<Coder> coder(const Settings& settings) {
  return quantised::scattering_coder({quantiser(settings), quantiser(settings), settings.feedback});
}

std::size_t kept_bytes(const Settings& settings, const Tensor& tensor, int ranks) {
  return quantised::owner_bytes(*quantiser(settings), settings.feedback, tensor, ranks);
}

}  // namespace

extern constinit const Codec int8{
    .name = "int8",
    .summary = "The nearest of 255 levels, scaled by the largest of 512 elements, with a residual",
    .source = "Dettmers, ICLR 2016; Karimireddy et al., ICML 2019",
    .combines = {.gather = true, .scatter = true},
    .one_round = false,
    .feedback = FeedbackUse::sound,
    .takes = takes,
    .wire_bytes = wire_bytes,
    .coder = coder,
    .kept_bytes = kept_bytes,
};

}  // namespace syncopate::compress::codec
