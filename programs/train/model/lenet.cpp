// A small convolutional network after LeNet-5 (LeCun et al. 1998), with ReLU and maximum pooling: 147,946 parameters.
#include "model.hpp"
#include "network/network.hpp"

namespace syncopate::train::model {
namespace {

// 28 -> conv1 24 -> pool 12 -> conv2 8 -> pool 4 pixels each way
Network build(Builder& builder, const ModelOptions& options) {
  const int side = ((options.side - 4) / 2 - 4) / 2;
  const Convolution conv1 =
      builder.convolution("conv1", {.in = 3, .out = 16, .kernel = {5, 5}, .same = false, .bias = true});
  const Convolution conv2 =
      builder.convolution("conv2", {.in = 16, .out = 32, .kernel = {5, 5}, .same = false, .bias = true});
  const Linear fc1 = builder.linear("fc1", 32 * side * side, 256, kBeforeRelu);
  const Linear fc2 = builder.linear("fc2", 256, options.classes);
  return builder.finish([=](const at::Tensor& images, bool) {
    at::Tensor x = at::max_pool2d(conv1(images).relu_(), 2);
    x = at::max_pool2d(conv2(x).relu_(), 2);
    return fc2(fc1(x.flatten(1)).relu_());
  });
}

}  // namespace

extern constinit const Model lenet;
const Model lenet{.name = "lenet",
                  .summary = "small convolutional network for 28x28 images, 0.6 MB of gradients",
                  .input = DataKind::images,
                  .side = 28,
                  .least_side = 16,
                  .one_side = true,
                  .learning_rate = 0.05,
                  .warmup = 100,
                  .build = build};

}  // namespace syncopate::train::model
