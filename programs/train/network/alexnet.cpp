// AlexNet: five convolutions, two of them normalised across channels, and three linear layers.
#include "network/alexnet.hpp"

#include "network/response_norm.hpp"

namespace syncopate::train {

Network build_alexnet(Builder& builder, const AlexNetShape& shape, int classes) {
  const Convolution conv1 = builder.convolution("conv1", {.in = 3,
                                                          .out = 96,
                                                          .kernel = {shape.kernel, shape.kernel},
                                                          .stride = shape.stride,
                                                          .same = shape.same,
                                                          .bias = true});
  const Convolution conv2 =
      builder.convolution("conv2", {.in = 96, .out = 256, .kernel = {5, 5}, .groups = 2, .bias = true});
  const Convolution conv3 = builder.convolution("conv3", {.in = 256, .out = 384, .bias = true});
  const Convolution conv4 = builder.convolution("conv4", {.in = 384, .out = 384, .groups = 2, .bias = true});
  const Convolution conv5 = builder.convolution("conv5", {.in = 384, .out = 256, .groups = 2, .bias = true});
  const Linear fc6 = builder.linear("fc6", 256 * shape.side * shape.side, 4096, kBeforeRelu);
  const Linear fc7 = builder.linear("fc7", 4096, 4096, kBeforeRelu);
  const Linear fc8 = builder.linear("fc8", 4096, classes);
  const int side = shape.side;
  return builder.finish([=](const at::Tensor& images, bool) {
    at::Tensor x = at::max_pool2d(response_norm(conv1(images).relu_()), 3, 2);
    x = at::max_pool2d(response_norm(conv2(x).relu_()), 3, 2);
    x = conv5(conv4(conv3(x).relu_()).relu_()).relu_();
    x = at::adaptive_avg_pool2d(at::max_pool2d(x, 3, 2), {side, side});  // no effect at 227 and at 32 pixels
    return fc8(fc7(fc6(x.flatten(1)).relu_()).relu_());
  });
}

}  // namespace syncopate::train
