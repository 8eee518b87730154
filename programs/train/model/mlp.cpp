// A multilayer perceptron, 3072-2048-2048-2048-10 by default: 14,706,698 parameters and little arithmetic.
#include <cmath>

#include "model.hpp"
#include "network/network.hpp"

namespace syncopate::train::model {
namespace {

Network build(Builder& builder, const ModelOptions& options) {
  const double before_relu = std::sqrt(2.0);
  const int width = options.width > 0 ? options.width : 2048;
  const Linear fc1 = builder.linear("fc1", 3 * options.side * options.side, width, before_relu);
  const Linear fc2 = builder.linear("fc2", width, width, before_relu);
  const Linear fc3 = builder.linear("fc3", width, width, before_relu);
  const Linear fc4 = builder.linear("fc4", width, options.classes);
  return builder.finish(
      [=](const at::Tensor& images, bool) { return fc4(fc3(fc2(fc1(images.flatten(1)).relu_()).relu_()).relu_()); });
}

}  // namespace

extern constinit const Model mlp;
const Model mlp{.name = "mlp",
                .summary = "perceptron 3072-2048-2048-2048-10, 58.8 MB of gradients; hidden layers by --width",
                .input = DataKind::images,
                .least_side = 28,
                .most_side = 32,
                .one_side = true,
                .learning_rate = 0.01,
                .warmup = 20,
                .build = build};

}  // namespace syncopate::train::model
