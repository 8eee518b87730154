// DenseNet-40 with growth 18 for CIFAR-10 (Huang, Liu, van der Maaten, Weinberger 2017, section 4.2), without dropout:
// 2,218,522 parameters.
#include <fmt/format.h>

#include "model.hpp"
#include "network/network.hpp"

namespace syncopate::train::model {
namespace {

constexpr int kBlocks = 3, kLayers = 12;  // depth = 3 * 12 layers, 2 transitions, the first convolution, the linear one
constexpr int kGrowth = 18, kFirst = 16;

/// Normalisation, ReLU, convolution.
struct DenseLayer {
  BatchNorm norm;
  Convolution convolution;
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x, bool training) const {
    return convolution(norm(x, training).relu_());
  }
};

struct Block {
  std::vector<DenseLayer> layers;        ///< each reads the block's input and the outputs of all layers before it
  std::optional<DenseLayer> transition;  ///< then the image is halved
};

DenseLayer build_layer(Builder& builder, const std::string& name, const ConvolutionShape& shape) {
  BatchNorm norm = builder.batch_norm(name + ".norm", shape.in);
  return {std::move(norm), builder.convolution(name + ".conv", shape)};
}

Network build(Builder& builder, const ModelOptions& options) {
  const Convolution first = builder.convolution("conv", {.in = 3, .out = kFirst});
  std::vector<Block> blocks;
  int in = kFirst;
  for (int b = 1; b <= kBlocks; ++b) {
    Block block;
    for (int i = 0; i < kLayers; ++i, in += kGrowth)
      block.layers.push_back(build_layer(builder, fmt::format("block{}.{}", b, i), {.in = in, .out = kGrowth}));
    if (b < kBlocks)
      block.transition = build_layer(builder, fmt::format("transition{}", b), {.in = in, .out = in, .kernel = {1, 1}});
    blocks.push_back(std::move(block));
  }
  const BatchNorm last = builder.batch_norm("norm", in);
  const Linear fc = builder.linear("fc", in, options.classes);
  return builder.finish([=](const at::Tensor& images, bool training) {
    at::Tensor x = first(images);
    for (const Block& block : blocks) {
      for (const DenseLayer& layer : block.layers) x = at::cat({x, layer(x, training)}, 1);
      if (block.transition) x = at::avg_pool2d((*block.transition)(x, training), 2);
    }
    return fc(last(x, training).relu_().mean({2, 3}));
  });
}

}  // namespace

extern constinit const Model densenet40;
const Model densenet40{
    .name = "densenet40",
    .summary = "densely connected network of depth 40, growth 18, for 32x32 images, 2,218,522 parameters",
    .input = DataKind::images,
    .least_side = 28,
    .learning_rate = 0.1,
    .warmup = 50,
    .build = build};

}  // namespace syncopate::train::model
