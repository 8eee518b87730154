// MSTopK: sends approximately the k largest elements, found by counting the elements above trial thresholds.
// CommLib (Shi et al., MLSys 2021) Algorithm 1, with the corrections in sparse/selection.hpp.
//
//   v = g + r;  S = all |v| >= t1 and a run of those with t2 <= |v| < t1, ceil(d n) in all;  send (S, v[S]);  r'[S] = 0
//   size:  as for topk: at d = 0.01 about 8.1 + 32 bits per selected element; N - 1 such packets reach every rank
//   reads: 2, and one for each of up to 30 trials; about 16 on normal gradients (topk: little more than 1)
#include "compress/sparse/density.hpp"
#include "compress/sparse/selection.hpp"

namespace syncopate::compress::codec {

namespace {

void select(const Compensated& tensor, double density, const base::CounterRandom& random, sparse::Selection& into) {
  static_cast<void>(sparse::select_by_bisection(tensor, sparse::selected_of(density, tensor.size()), random, into));
}

}  // namespace

extern constinit const Codec mstopk = sparse::density_codec({
    .name = "mstopk",
    .summary = "Approximately the largest elements, by counts above trial thresholds: `mstopk:DENSITY`",
    .source = "CommLib Algorithm 1 (MSTopK), errata corrected",
    .combines = {.gather = true},
    .coder = sparse::density_coder<select>,
});

}  // namespace syncopate::compress::codec
