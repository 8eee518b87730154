// VGG-16 and VGG-19: 3 x 3 convolutions in five stages, three linear layers.
#include "network/architecture.hpp"

namespace syncopate::network {
namespace {

/// `channels` of 3 x 3 convolutions; 0 stands for a pooling.
std::vector<Tensor> vgg(std::span<const std::uint64_t> channels) {
  TensorTable table;
  Volume volume{3, 224, 224};
  int index = 0;
  for (const std::uint64_t count : channels) {
    const std::string name = "features." + std::to_string(index);
    volume = count == 0 ? Window(2, 2, 0).over(volume) : table.convolve(name, volume, {count, Window(3, 1, 1), true});
    index += count == 0 ? 1 : 2;
  }
  table.linear("classifier.0", {volume.elements(), 4096});
  table.linear("classifier.3", {4096, 4096});
  table.linear("classifier.6", {4096, 1000});
  return std::move(table).tensors();
}

std::vector<Tensor> tensors_of_vgg16() {
  constexpr std::uint64_t kChannels[] = {64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0};
  return vgg(kChannels);
}

std::vector<Tensor> tensors_of_vgg19() {
  constexpr std::uint64_t kChannels[] = {64,  64,  0,   128, 128, 0,   256, 256, 256, 256, 0,
                                         512, 512, 512, 512, 0,   512, 512, 512, 512, 0};
  return vgg(kChannels);
}

}  // namespace

extern constinit const Architecture vgg16{
    .name = "vgg16",
    .summary = "VGG-16: 138 357 544 parameters, three quarters of them in one layer",
    .source = "Simonyan & Zisserman, ICLR 2015, configuration D",
    .tensors = tensors_of_vgg16,
};

extern constinit const Architecture vgg19{
    .name = "vgg19",
    .summary = "VGG-19: 143 667 240 parameters",
    .source = "Simonyan & Zisserman, ICLR 2015, configuration E",
    .tensors = tensors_of_vgg19,
};

}  // namespace syncopate::network
