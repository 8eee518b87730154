// Top-k: sends exactly the k elements of the greatest magnitude; the residual keeps the others.
// Aji and Heafield, EMNLP 2017; selection by a sampled threshold and counted magnitudes (sparse/selection.hpp).
//
//   v = g + r;  S = the ceil(d n) largest |v|;  send (S, v[S]);  r'[S] = 0, r' = v elsewhere
//   size: at d = 0.01 about 8.1 + 32 bits per selected element; N - 1 such packets reach every rank
#include "compress/sparse/density.hpp"

namespace syncopate::compress::codec {

extern constinit const Codec topk = sparse::density_codec({
    .name = "topk",
    .summary = "Exactly the largest elements, with coded indices: `topk:DENSITY`",
    .source = "Aji and Heafield, EMNLP 2017",
    .combines = {.gather = true},
    .coder = sparse::density_coder<sparse::select_largest_share>,
});

}  // namespace syncopate::compress::codec
