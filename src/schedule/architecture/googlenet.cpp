// GoogLeNet without auxiliary classifiers.
#include "schedule/architecture.hpp"

namespace syncopate::schedule::architecture {

namespace {

std::vector<Tensor> tensors() { return bvlc_googlenet(false); }

}  // namespace

extern constinit const Architecture googlenet{
    .name = "googlenet",
    .summary = "GoogLeNet without auxiliary classifiers: 6 998 552 parameters",
    .source = "Szegedy et al., CVPR 2015, as BVLC trained it",
    .tensors = tensors,
};

}  // namespace syncopate::schedule::architecture
