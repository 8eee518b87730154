// IEEE half precision: half the bytes, 11 significant bits, largest value 65504.
// Micikevicius et al., "Mixed precision training", ICLR 2018, on the wire only.
//
//   encode: round each element to nearest even; the sum of N ranks is formed in f32 and rounded at every hop
//   size:   2 bytes per element
#include "compress/casting.hpp"

namespace syncopate::compress::codec {

extern constinit const Codec fp16 = casting_codec<DType::f16>({
    .name = "fp16",
    .summary = "IEEE half precision: half the bytes, 11 significant bits, largest value 65504",
    .source = "Micikevicius et al., \"Mixed precision training\", ICLR 2018, on the wire only",
});

}  // namespace syncopate::compress::codec
