// ResNet-20 for images of 32 x 32: three stages of 3 blocks, shortcuts without parameters.
#include "schedule/architecture.hpp"

namespace syncopate::schedule::architecture {

namespace {

std::vector<Tensor> tensors() { return cifar_resnet(3); }

}  // namespace

extern constinit const Architecture resnet20{
    .name = "resnet20",
    .summary = "ResNet-20 for CIFAR: 269 722 parameters",
    .source = "He et al., CVPR 2016, section 4.2, option A",
    .tensors = tensors,
};

}  // namespace syncopate::schedule::architecture
