// ResNet-110 for images of 32 x 32: three stages of 18 blocks, shortcuts without parameters.
#include "schedule/architecture.hpp"

namespace syncopate::schedule::architecture {

namespace {

std::vector<Tensor> tensors() { return cifar_resnet(18); }

}  // namespace

extern constinit const Architecture resnet110{
    .name = "resnet110",
    .summary = "ResNet-110 for CIFAR: 1 727 962 parameters",
    .source = "He et al., CVPR 2016, section 4.2, option A",
    .tensors = tensors,
};

}  // namespace syncopate::schedule::architecture
