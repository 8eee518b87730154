// VGG-11 with batch normalisation for 32x32 images (Simonyan, Zisserman 2015, configuration A): 9,228,362 parameters.
#include <fmt/format.h>

#include "model.hpp"
#include "network/network.hpp"

namespace syncopate::train::model {
namespace {

// 64 M 128 M 256 256 M 512 512 M 512 512 M, then one linear layer. M halves the image, five times 32 -> 1; the result
// of a larger image is averaged.
struct ConvolutionStage {
  Convolution conv;
  BatchNorm bn;
  bool halves = false;
};

Network build(Builder& builder, const ModelOptions& options) {
  static constexpr struct {
    int channels;
    bool halves;
  } kPlan[] = {{64, true},   {128, true}, {256, false}, {256, true},
               {512, false}, {512, true}, {512, false}, {512, true}};
  std::vector<ConvolutionStage> stages;
  int in = 3, index = 1;
  for (const auto [channels, halves] : kPlan) {
    Convolution conv = builder.convolution(fmt::format("conv{}", index), {.in = in, .out = channels});
    stages.push_back({std::move(conv), builder.batch_norm(fmt::format("bn{}", index), channels), halves});
    in = channels;
    ++index;
  }
  const Linear fc = builder.linear("fc", 512, options.classes);
  return builder.finish([=](const at::Tensor& images, bool training) {
    at::Tensor x = images;
    for (const ConvolutionStage& stage : stages) {
      x = stage.bn(stage.conv(x), training).relu_();
      if (stage.halves) x = at::max_pool2d(x, 2);
    }
    return fc(x.mean({2, 3}));
  });
}

}  // namespace

extern constinit const Model vgg11;
const Model vgg11{.name = "vgg11",
                  .summary = "VGG-11 with batch normalisation for 32x32 images, 36.9 MB of gradients",
                  .input = DataKind::images,
                  .learning_rate = 0.02,
                  .warmup = 50,
                  .build = build};

}  // namespace syncopate::train::model
