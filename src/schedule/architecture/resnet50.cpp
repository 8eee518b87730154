// ResNet-50: bottleneck blocks, the stride on their 3 x 3 convolution (v1.5).
#include "schedule/architecture.hpp"

namespace syncopate::schedule::architecture {

namespace {

struct Block {
  std::string name;
  std::uint64_t width = 64, stride = 1;
};

/// 1x1 down, 3x3, 1x1 up.
Volume bottleneck(TensorTable& notebook, const Volume& input, const Block& block) {
  const auto step = [&](const char* number, const Volume& from, const TensorTable::Convolution& convolution) {
    const Volume volume = notebook.convolve(block.name + ".conv" + number, from, convolution);
    notebook.normalise(block.name + ".bn" + number, volume);
    return volume;
  };
  Volume volume = step("1", input, {block.width, Window(1, 1, 0)});
  volume = step("2", volume, {block.width, Window(3, block.stride, 1)});
  return step("3", volume, {4 * block.width, Window(1, 1, 0)});
}

std::vector<Tensor> tensors() {
  TensorTable notebook;
  Volume volume = notebook.convolve("conv1", {3, 224, 224}, {64, Window(7, 2, 3)});
  notebook.normalise("bn1", volume);
  volume = Window(3, 2, 1).over(volume);
  constexpr std::uint64_t kBlocks[] = {3, 4, 6, 3};
  for (std::uint64_t stage = 0; stage < 4; ++stage)
    for (std::uint64_t block = 0; block < kBlocks[stage]; ++block) {
      const std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(block);
      const std::uint64_t width = std::uint64_t{64} << stage, stride = block == 0 && stage > 0 ? 2 : 1;
      const Volume input = volume;
      volume = bottleneck(notebook, input, {name, width, stride});
      if (block > 0) continue;  // the first block of a stage projects its shortcut
      const Volume shortcut = notebook.convolve(name + ".downsample.0", input, {4 * width, Window(1, stride, 0)});
      notebook.normalise(name + ".downsample.1", shortcut);
    }
  notebook.linear("fc", {volume.channels, 1000});
  return std::move(notebook).tensors();
}

}  // namespace

extern constinit const Architecture resnet50{
    .name = "resnet50",
    .summary = "ResNet-50: 25 557 032 parameters in 107 layers, 161 tensors",
    .source = "He et al., CVPR 2016; the stride as in PyTorch and its successors",
    .tensors = tensors,
};

}  // namespace syncopate::schedule::architecture
