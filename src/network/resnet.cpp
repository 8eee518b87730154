// Residual networks: ResNet-20 and ResNet-110 for 32 x 32, ResNet-50 and ResNet-101 (v1.5) with bottleneck blocks.
#include <array>

#include "network/architecture.hpp"

namespace syncopate::network {
namespace {

std::vector<Tensor> cifar_resnet(std::uint64_t blocks_a_stage) {
  TensorTable table;
  Volume volume = table.convolve("conv1", {3, 32, 32}, {16, Window(3, 1, 1)});
  table.normalise("bn1", volume);
  for (std::uint64_t stage = 0; stage < 3; ++stage)
    for (std::uint64_t block = 0; block < blocks_a_stage; ++block) {
      const std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(block);
      const std::uint64_t channels = std::uint64_t{16} << stage, stride = block == 0 && stage > 0 ? 2 : 1;
      volume = table.convolve(name + ".conv1", volume, {channels, Window(3, stride, 1)});
      table.normalise(name + ".bn1", volume);
      volume = table.convolve(name + ".conv2", volume, {channels, Window(3, 1, 1)});
      table.normalise(name + ".bn2", volume);
    }
  table.linear("fc", {volume.channels, 10});
  return std::move(table).tensors();
}

struct Block {
  std::string name;
  std::uint64_t width = 64, stride = 1;
};

/// 1x1 down, 3x3, 1x1 up.
Volume bottleneck(TensorTable& table, const Volume& input, const Block& block) {
  const auto step = [&](const char* number, const Volume& from, const TensorTable::Convolution& convolution) {
    const Volume volume = table.convolve(block.name + ".conv" + number, from, convolution);
    table.normalise(block.name + ".bn" + number, volume);
    return volume;
  };
  Volume volume = step("1", input, {block.width, Window(1, 1, 0)});
  volume = step("2", volume, {block.width, Window(3, block.stride, 1)});
  return step("3", volume, {4 * block.width, Window(1, 1, 0)});
}

std::vector<Tensor> bottleneck_resnet(const std::array<std::uint64_t, 4>& blocks) {
  TensorTable table;
  Volume volume = table.convolve("conv1", {3, 224, 224}, {64, Window(7, 2, 3)});
  table.normalise("bn1", volume);
  volume = Window(3, 2, 1).over(volume);
  for (std::uint64_t stage = 0; stage < 4; ++stage)
    for (std::uint64_t block = 0; block < blocks.at(stage); ++block) {
      const std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(block);
      const std::uint64_t width = std::uint64_t{64} << stage, stride = block == 0 && stage > 0 ? 2 : 1;
      const Volume input = volume;
      volume = bottleneck(table, input, {name, width, stride});
      if (block > 0) continue;  // the first block of a stage projects its shortcut
      const Volume shortcut = table.convolve(name + ".downsample.0", input, {4 * width, Window(1, stride, 0)});
      table.normalise(name + ".downsample.1", shortcut);
    }
  table.linear("fc", {volume.channels, 1000});
  return std::move(table).tensors();
}

}  // namespace

extern constinit const Architecture resnet20{
    .name = "resnet20",
    .summary = "ResNet-20 for CIFAR: 269 722 parameters",
    .source = "He et al., CVPR 2016, section 4.2, option A",
    .tensors = [] { return cifar_resnet(3); },
};

extern constinit const Architecture resnet110{
    .name = "resnet110",
    .summary = "ResNet-110 for CIFAR: 1 727 962 parameters",
    .source = "He et al., CVPR 2016, section 4.2, option A",
    .tensors = [] { return cifar_resnet(18); },
};

extern constinit const Architecture resnet50{
    .name = "resnet50",
    .summary = "ResNet-50: 25 557 032 parameters in 107 layers, 161 tensors",
    .source = "He et al., CVPR 2016; the stride as in PyTorch and its successors",
    .tensors =
        [] {
          return bottleneck_resnet({3, 4, 6, 3});
        },
};

extern constinit const Architecture resnet101{
    .name = "resnet101",
    .summary = "ResNet-101: 44 549 160 parameters in 209 layers, 314 tensors",
    .source = "He et al., CVPR 2016; the stride as in PyTorch and its successors",
    .tensors =
        [] {
          return bottleneck_resnet({3, 4, 23, 3});
        },
};

}  // namespace syncopate::network
