// VGG-16 (Simonyan, Zisserman 2015, configuration D), without dropout: 138,357,544 parameters.
#include <fmt/format.h>

#include "model.hpp"
#include "network/network.hpp"

namespace syncopate::train::model {
namespace {

constexpr int kHalves = 0;  // marks a pooling in the plan below
constexpr int kPlan[] = {64,      64,  kHalves, 128, 128,     kHalves, 256, 256, 256,
                         kHalves, 512, 512,     512, kHalves, 512,     512, 512, kHalves};

Network build(Builder& builder, const ModelOptions& options) {
  std::vector<std::optional<Convolution>> stages;
  int in = 3, index = 0;
  for (const int channels : kPlan) {
    if (channels == kHalves) {
      stages.emplace_back();
      ++index;
      continue;
    }
    stages.emplace_back(
        builder.convolution(fmt::format("features.{}", index), {.in = in, .out = channels, .bias = true}));
    in = channels;
    index += 2;
  }
  const Linear fc6 = builder.linear("classifier.0", 512 * 7 * 7, 4096, kBeforeRelu);
  const Linear fc7 = builder.linear("classifier.3", 4096, 4096, kBeforeRelu);
  const Linear fc8 = builder.linear("classifier.6", 4096, options.classes);
  return builder.finish([=](const at::Tensor& images, bool) {
    at::Tensor x = images;
    for (const auto& stage : stages) x = stage ? (*stage)(x).relu_() : at::max_pool2d(x, 2);
    x = at::adaptive_avg_pool2d(x, {7, 7});  // no effect at 224 pixels
    return fc8(fc7(fc6(x.flatten(1)).relu_()).relu_());
  });
}

}  // namespace

extern constinit const Model vgg16;
const Model vgg16{.name = "vgg16",
                  .summary = "VGG-16 for photographs, 138,357,544 parameters, 74 % of them in one layer",
                  .input = DataKind::images,
                  .side = 224,
                  .classes = 1000,
                  .learning_rate = 0.01,
                  .warmup = 50,
                  .build = build};

}  // namespace syncopate::train::model
