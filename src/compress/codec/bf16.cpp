// bfloat16: half the bytes, 8 significant bits, the range of f32.
// Kalamkar et al., "A study of BFLOAT16 for deep learning training", arXiv:1905.12322, on the wire only.
//
//   encode: round each element to nearest even; the sum of N ranks is formed in f32 and rounded at every hop
//   size:   2 bytes per element
#include "compress/codec.hpp"

namespace syncopate::compress::codec {

namespace {

std::unique_ptr<Coder> coder(Buffer gradient) { return casting_coder(gradient, DType::bf16); }

}  // namespace

extern constinit const Codec bf16{
    .name = "bf16",
    .summary = "bfloat16: half the bytes, 8 significant bits, the range of f32",
    .source = "Kalamkar et al., \"A study of BFLOAT16 for deep learning training\", arXiv:1905.12322, on the wire only",
    .combine = Combine::additive,
    .coder = coder,
};

}  // namespace syncopate::compress::codec
