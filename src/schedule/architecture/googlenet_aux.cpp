// GoogLeNet with the two classifiers used only in training; the network that MG-WFBP measured as "13M".
#include "schedule/architecture.hpp"

namespace syncopate::schedule::architecture {

namespace {

std::vector<Tensor> tensors() { return bvlc_googlenet(true); }

}  // namespace

extern constinit const Architecture googlenet_aux{
    .name = "googlenet_aux",
    .summary = "GoogLeNet with both auxiliary classifiers: 13 378 280 parameters",
    .source = "Szegedy et al., CVPR 2015, as BVLC trained it",
    .tensors = tensors,
};

}  // namespace syncopate::schedule::architecture
