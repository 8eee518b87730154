// Residual networks of bottleneck blocks: 1x1 down, 3x3, 1x1 up, around a shortcut.
#include "network/bottleneck.hpp"

#include <fmt/format.h>

namespace syncopate::train {
namespace {

struct Normalised {
  Convolution convolution;
  BatchNorm norm;
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x, bool training) const {
    return norm(convolution(x), training);
  }
};

struct Bottleneck {
  Normalised narrow, square, wide;
  std::optional<Normalised> shortcut;

  [[nodiscard]] at::Tensor operator()(const at::Tensor& x, bool training) const {
    const at::Tensor inner = square(narrow(x, training).relu_(), training).relu_();
    return wide(inner, training).add(shortcut ? (*shortcut)(x, training) : x).relu_();
  }
};

std::vector<Bottleneck> build_blocks(Builder& builder, const std::array<int, 4>& blocks_of) {
  std::vector<Bottleneck> blocks;
  int in = 64;
  for (int stage = 0; stage < 4; ++stage)
    for (int i = 0; i < blocks_of.at(static_cast<std::size_t>(stage)); ++i) {
      const int width = 64 << stage, out = 4 * width, stride = stage > 0 && i == 0 ? 2 : 1;
      const std::string name = fmt::format("layer{}.{}.", stage + 1, i);
      Bottleneck block;
      block.narrow = {builder.convolution(name + "conv1", {.in = in, .out = width, .kernel = {1, 1}}),
                      builder.batch_norm(name + "bn1", width)};
      block.square = {builder.convolution(name + "conv2", {.in = width, .out = width, .stride = stride}),
                      builder.batch_norm(name + "bn2", width)};
      block.wide = {builder.convolution(name + "conv3", {.in = width, .out = out, .kernel = {1, 1}}),
                    builder.batch_norm(name + "bn3", out, kBranchScale)};
      if (i == 0)
        block.shortcut = Normalised{
            builder.convolution(name + "downsample.0", {.in = in, .out = out, .kernel = {1, 1}, .stride = stride}),
            builder.batch_norm(name + "downsample.1", out)};
      blocks.push_back(std::move(block));
      in = out;
    }
  return blocks;
}

}  // namespace

Network build_bottleneck_resnet(Builder& builder, const std::array<int, 4>& blocks_of, int classes) {
  Convolution conv1 = builder.convolution("conv1", {.in = 3, .out = 64, .kernel = {7, 7}, .stride = 2});
  const Normalised stem{std::move(conv1), builder.batch_norm("bn1", 64)};
  const std::vector<Bottleneck> blocks = build_blocks(builder, blocks_of);
  const Linear fc = builder.linear("fc", 2048, classes);
  return builder.finish([=](const at::Tensor& images, bool training) {
    at::Tensor x = at::max_pool2d(stem(images, training).relu_(), 3, 2, 1);
    for (const Bottleneck& block : blocks) x = block(x, training);
    return fc(x.mean({2, 3}));
  });
}

}  // namespace syncopate::train
