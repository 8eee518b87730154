// bfloat16: half the bytes, 8 significant bits, the range of f32.
// Kalamkar et al., "A study of BFLOAT16 for deep learning training", arXiv:1905.12322, on the wire only.
//
//   encode: round each element to nearest even; the sum of N ranks is formed in f32 and rounded at every hop
//   size:   2 bytes per element
#include "compress/casting.hpp"

namespace syncopate::compress::codec {

namespace {

bool takes(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16; }

/// Gradients that are already bfloat16 are sent uncoded.
bool codes(const Settings& /*settings*/, const Tensor& whole) { return whole.values.dtype != DType::bf16; }

std::size_t wire_bytes(const Settings& /*settings*/, std::span<const Tensor> tensors) {
  return elements_of(tensors) * size_of(DType::bf16);
}

std::unique_ptr<Coder> coder(const Settings& /*settings*/) { return casting_coder(DType::bf16); }

}  // namespace

extern constinit const Codec bf16{
    .name = "bf16",
    .summary = "bfloat16: half the bytes, 8 significant bits, the range of f32",
    .source = "Kalamkar et al., \"A study of BFLOAT16 for deep learning training\", arXiv:1905.12322, on the wire only",
    .combines = {.additive = true},
    .casts_to = DType::bf16,
    .takes = takes,
    .wire_bytes = wire_bytes,
    .coder = coder,
    .codes = codes,
};

}  // namespace syncopate::compress::codec
