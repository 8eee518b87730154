// ResNet-50, version 1.5: strides in the 3x3 (He, Zhang, Ren, Sun 2016, table 1): 25,557,032 parameters.
#include <fmt/format.h>

#include "model.hpp"
#include "network/network.hpp"

namespace syncopate::train::model {
namespace {

/// Initial scale of a block's branch, which is added to its shortcut (Goyal et al. 2017 use 0).
constexpr float kBranchScale = 0.5F;

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

std::vector<Bottleneck> build_blocks(Builder& builder) {
  static constexpr int kBlocks[] = {3, 4, 6, 3};
  std::vector<Bottleneck> blocks;
  int in = 64;
  for (int stage = 0; stage < 4; ++stage)
    for (int i = 0; i < kBlocks[stage]; ++i) {
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

Network build(Builder& builder, const ModelOptions& options) {
  Convolution conv1 = builder.convolution("conv1", {.in = 3, .out = 64, .kernel = {7, 7}, .stride = 2});
  const Normalised stem{std::move(conv1), builder.batch_norm("bn1", 64)};
  const std::vector<Bottleneck> blocks = build_blocks(builder);
  const Linear fc = builder.linear("fc", 2048, options.classes);
  return builder.finish([=](const at::Tensor& images, bool training) {
    at::Tensor x = at::max_pool2d(stem(images, training).relu_(), 3, 2, 1);
    for (const Bottleneck& block : blocks) x = block(x, training);
    return fc(x.mean({2, 3}));
  });
}

}  // namespace

extern constinit const Model resnet50;
const Model resnet50{.name = "resnet50",
                     .summary = "residual network of depth 50 for photographs, 25,557,032 parameters",
                     .input = DataKind::images,
                     .side = 224,
                     .classes = 1000,
                     .learning_rate = 0.1,
                     .warmup = 50,
                     .build = build};

}  // namespace syncopate::train::model
