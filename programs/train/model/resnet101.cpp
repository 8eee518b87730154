// ResNet-101, version 1.5: strides in the 3x3 (He, Zhang, Ren, Sun 2016, table 1): 44,549,160 parameters.
#include "model.hpp"
#include "network/bottleneck.hpp"

namespace syncopate::train::model {
namespace {

Network build(Builder& builder, const ModelOptions& options) {
  return build_bottleneck_resnet(builder, {3, 4, 23, 3}, options.classes);
}

}  // namespace

extern constinit const Model resnet101;
const Model resnet101{.name = "resnet101",
                      .summary = "residual network of depth 101 for photographs, 44,549,160 parameters",
                      .input = DataKind::images,
                      .side = 224,
                      .classes = 1000,
                      .learning_rate = 0.1,
                      .warmup = 100,
                      .build = build};

}  // namespace syncopate::train::model
