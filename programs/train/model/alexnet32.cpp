// AlexNet for 32x32 images: the first convolution is 5x5 with stride 1, and fc6 has 3x3 inputs: 28,569,994 parameters.
#include "model.hpp"
#include "network/alexnet.hpp"

namespace syncopate::train::model {
namespace {

Network build(Builder& builder, const ModelOptions& options) {
  return build_alexnet(builder, {.kernel = 5, .stride = 1, .same = true, .side = 3}, options.classes);
}

}  // namespace

extern constinit const Model alexnet32;
const Model alexnet32{
    .name = "alexnet32",
    .summary = "AlexNet for 32x32 images, with two groups, 28,569,994 parameters, 92 % of them in its linear layers",
    .input = DataKind::images,
    .least_side = 28,
    .learning_rate = 0.001,
    .warmup = 50,
    .build = build};

}  // namespace syncopate::train::model
