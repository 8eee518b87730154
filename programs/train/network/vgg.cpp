// VGG for photographs: convolutions with biases, no batch normalisation.
#include "network/vgg.hpp"

#include <fmt/format.h>

namespace syncopate::train {

Network build_vgg(Builder& builder, const std::array<int, 5>& convolutions, int classes) {
  static constexpr int kChannels[] = {64, 128, 256, 512, 512};
  std::vector<std::vector<Convolution>> stages;
  int in = 3, index = 0;
  for (std::size_t stage = 0; stage < convolutions.size(); ++stage, ++index) {  // a pooling has an index too
    std::vector<Convolution> made;
    for (int i = 0; i < convolutions.at(stage); ++i, index += 2) {
      made.push_back(
          builder.convolution(fmt::format("features.{}", index), {.in = in, .out = kChannels[stage], .bias = true}));
      in = kChannels[stage];
    }
    stages.push_back(std::move(made));
  }
  const Linear fc6 = builder.linear("classifier.0", 512 * 7 * 7, 4096, kBeforeRelu);
  const Linear fc7 = builder.linear("classifier.3", 4096, 4096, kBeforeRelu);
  const Linear fc8 = builder.linear("classifier.6", 4096, classes);
  return builder.finish([=](const at::Tensor& images, bool) {
    at::Tensor x = images;
    for (const auto& stage : stages) {
      for (const Convolution& convolution : stage) x = convolution(x).relu_();
      x = at::max_pool2d(x, 2);
    }
    x = at::adaptive_avg_pool2d(x, {7, 7});  // no effect at 224 pixels
    return fc8(fc7(fc6(x.flatten(1)).relu_()).relu_());
  });
}

}  // namespace syncopate::train
