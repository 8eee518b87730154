// IEEE half precision: half the bytes, 11 significant bits, largest value 65504.
// Micikevicius et al., "Mixed precision training", ICLR 2018, on the wire only.
//
//   encode: round each element to nearest even; the sum of N ranks is formed in f32 and rounded at every hop
//   size:   2 bytes per element
#include "compress/codec.hpp"

namespace syncopate::compress::codec {

namespace {

std::unique_ptr<Coder> coder(Buffer gradient) { return casting_coder(gradient, DType::f16); }

}  // namespace

extern constinit const Codec fp16{
    .name = "fp16",
    .summary = "IEEE half precision: half the bytes, 11 significant bits, largest value 65504",
    .source = "Micikevicius et al., \"Mixed precision training\", ICLR 2018, on the wire only",
    .combine = Combine::additive,
    .coder = coder,
};

}  // namespace syncopate::compress::codec
