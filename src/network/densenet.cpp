// DenseNet for images of 32 x 32: every layer reads the outputs of all layers before it in its block.
#include "network/architecture.hpp"

namespace syncopate::network {
namespace {

constexpr std::uint64_t kDenseBlocks = 3, kDenseLayers = 12, kGrowth = 18;

std::vector<Tensor> densenet40_tensors() {
  TensorTable table;
  Volume volume = table.convolve("conv", {3, 32, 32}, {16, Window(3, 1, 1)});
  for (std::uint64_t block = 1; block <= kDenseBlocks; ++block) {
    for (std::uint64_t layer = 0; layer < kDenseLayers; ++layer) {
      const std::string name = "block" + std::to_string(block) + "." + std::to_string(layer);
      table.normalise(name + ".norm", volume);
      volume.channels += table.convolve(name + ".conv", volume, {kGrowth, Window(3, 1, 1)}).channels;
    }
    if (block == kDenseBlocks) break;
    const std::string name = "transition" + std::to_string(block);
    table.normalise(name + ".norm", volume);
    volume = Window(2, 2, 0).over(table.convolve(name + ".conv", volume, {volume.channels, Window(1, 1, 0)}));
  }
  table.normalise("norm", volume);
  table.linear("fc", {volume.channels, 10});
  return std::move(table).tensors();
}

}  // namespace

extern constinit const Architecture densenet40{
    .name = "densenet40",
    .summary = "DenseNet-40 with growth 18 for CIFAR: 2 218 522 parameters",
    .source = "Huang et al., CVPR 2017; growth and first convolution as the thesis' 2.22 M parameters need",
    .tensors = densenet40_tensors,
};

}  // namespace syncopate::network
