// VGG-16: thirteen 3 x 3 convolutions in five stages, three linear layers.
#include "schedule/architecture.hpp"

namespace syncopate::schedule::architecture {

namespace {

std::vector<Tensor> tensors() {
  constexpr std::uint64_t kChannels[] = {64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0};
  return vgg(kChannels);
}

}  // namespace

extern constinit const Architecture vgg16{
    .name = "vgg16",
    .summary = "VGG-16: 138 357 544 parameters, three quarters of them in one layer",
    .source = "Simonyan & Zisserman, ICLR 2015, configuration D",
    .tensors = tensors,
};

}  // namespace syncopate::schedule::architecture
