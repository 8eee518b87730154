// IEEE half precision: half the bytes, 11 significant bits, largest value 65504.
// Micikevicius et al., "Mixed precision training", ICLR 2018, on the wire only.
//
//   encode: round each element to nearest even; the sum of N ranks is formed in f32 and rounded at every hop
//   size:   2 bytes per element
#include "compress/casting.hpp"

namespace syncopate::compress::codec {

namespace {

bool takes(DType dtype) { return dtype == DType::f32 || dtype == DType::f16; }

/// Gradients that are already fp16 are sent uncoded.
bool codes(const Settings& /*settings*/, const Tensor& whole) { return whole.values.dtype != DType::f16; }

std::size_t wire_bytes(const Settings& /*settings*/, std::span<const Tensor> tensors) {
  return elements_of(tensors) * size_of(DType::f16);
}

std::unique_ptr<Coder> coder(const Settings& /*settings*/) { return casting_coder(DType::f16); }

}  // namespace

extern constinit const Codec fp16{
    .name = "fp16",
    .summary = "IEEE half precision: half the bytes, 11 significant bits, largest value 65504",
    .source = "Micikevicius et al., \"Mixed precision training\", ICLR 2018, on the wire only",
    .combines = {.additive = true},
    .casts_to = DType::f16,
    .takes = takes,
    .wire_bytes = wire_bytes,
    .coder = coder,
    .codes = codes,
};

}  // namespace syncopate::compress::codec
