// Single: one message with all gradients after the whole backward pass.
// You et al., "Scaling deep learning on GPU and Knights Landing clusters" (SyncEASGD), SC 2017; MG-WFBP: M = {2..L}.
//
//   backward   |L4|L3|L2|L1|
//   exchange               | 4 3 2 1 |       one startup cost a, nothing hidden
#include "schedule/policy.hpp"

namespace syncopate::schedule::policy {

namespace {

Partition partition(const Timeline& timeline, const PolicyOptions& /*options*/) {
  return {{0, timeline.layers.size() - 1}};
}

}  // namespace

extern constinit const Policy single{
    .name = "single",
    .summary = "All gradients in one message after the backward pass",
    .source = "You et al. 2017 (SyncEASGD); MG-WFBP section III",
    .partition = partition,
};

}  // namespace syncopate::schedule::policy
