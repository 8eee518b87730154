// bfloat16: half the bytes, 8 significant bits, the range of f32.
// Kalamkar et al., "A study of BFLOAT16 for deep learning training", arXiv:1905.12322, on the wire only.
//
//   encode: round each element to nearest even; the sum of N ranks is formed in f32 and rounded at every hop
//   size:   2 bytes per element
#include "compress/casting.hpp"

namespace syncopate::compress::codec {

extern constinit const Codec bf16 = casting_codec<DType::bf16>({
    .name = "bf16",
    .summary = "bfloat16: half the bytes, 8 significant bits, the range of f32",
    .source = "Kalamkar et al., \"A study of BFLOAT16 for deep learning training\", arXiv:1905.12322, on the wire only",
});

}  // namespace syncopate::compress::codec
