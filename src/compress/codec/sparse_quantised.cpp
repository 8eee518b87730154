// Top-k with quantised values: sends exactly the k largest elements, each as a sign and a level of a common scale.
// Selection as in topk. The residual keeps the rounding errors and the elements that were not selected.
//
//   v = g + r;  S = the ceil(d n) largest |v|;  q = max |v[S]| / (2^(b-1) - 1);  send (S, u = q round(v[S] / q))
//   r'[S] = v[S] - u, r' = v elsewhere
//   size: at d = 0.01 about 8.1 + b bits per selected element, and 4 bytes; N - 1 such packets reach every rank
#include "compress/sparse/density.hpp"

namespace syncopate::compress::codec {

namespace {

constexpr Parameter kParameters[] = {sparse::kDensity[0], {"bits", 1, 8, true}};

}  // namespace

extern constinit const Codec sparse_quantised = sparse::density_codec({
    .name = "sparse_quantised",
    .summary = "Exactly the largest elements, with values of 2 to 8 bits: `sparse_quantised:DENSITY,BITS`",
    .source = "topk's selection with values as in Alistarh et al., NIPS 2017 (QSGD), rounded to nearest",
    .combines = {.gather = true},
    .parameter = "0.01,4",
    .parameters = kParameters,
    .coder = sparse::density_coder<sparse::select_largest_share>,
});

}  // namespace syncopate::compress::codec
