// Residual networks for 32x32 images: blocks of two 3x3 convolutions around a shortcut.
#include "network/resnet.hpp"

#include <fmt/format.h>

namespace syncopate::train {
namespace {

struct Block {
  Convolution conv1;
  BatchNorm bn1;
  Convolution conv2;
  BatchNorm bn2;
  int stride = 1;
  int more_channels = 0;

  /// Option A: every other pixel; new channels are zero, half of them in front.
  [[nodiscard]] at::Tensor shortcut(const at::Tensor& x) const {
    if (stride == 1 && more_channels == 0) return x;
    const at::Tensor coarse = x.slice(2, 0, {}, stride).slice(3, 0, {}, stride);
    return at::constant_pad_nd(coarse, {0, 0, 0, 0, more_channels / 2, more_channels - more_channels / 2});
  }
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x, bool training) const {
    const at::Tensor inner = at::relu(bn1(conv1(x), training));
    return bn2(conv2(inner), training).add(shortcut(x)).relu_();
  }
};

std::vector<Block> build_blocks(Builder& builder, int blocks_per_stage) {
  std::vector<Block> blocks;
  int in = 16;
  for (int stage = 1; stage <= 3; ++stage) {
    const int out = 8 << stage;
    for (int i = 0; i < blocks_per_stage; ++i) {
      const std::string name = fmt::format("layer{}.{}.", stage, i);
      Block block;
      block.stride = stage > 1 && i == 0 ? 2 : 1;
      block.more_channels = out - in;
      block.conv1 = builder.convolution(name + "conv1", {.in = in, .out = out, .stride = block.stride});
      block.bn1 = builder.batch_norm(name + "bn1", out);
      block.conv2 = builder.convolution(name + "conv2", {.in = out, .out = out});
      block.bn2 = builder.batch_norm(name + "bn2", out, kBranchScale);
      blocks.push_back(std::move(block));
      in = out;
    }
  }
  return blocks;
}

}  // namespace

Network build_resnet(Builder& builder, int blocks_per_stage, int classes) {
  const Convolution conv1 = builder.convolution("conv1", {.in = 3, .out = 16});
  const BatchNorm bn1 = builder.batch_norm("bn1", 16);
  const std::vector<Block> blocks = build_blocks(builder, blocks_per_stage);
  const Linear fc = builder.linear("fc", 64, classes);
  return builder.finish([=](const at::Tensor& images, bool training) {
    at::Tensor x = at::relu(bn1(conv1(images), training));
    for (const Block& block : blocks) x = block(x, training);
    return fc(x.mean({2, 3}));
  });
}

}  // namespace syncopate::train
