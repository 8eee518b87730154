// ResNet-50, version 1.5: strides in the 3x3 (He, Zhang, Ren, Sun 2016, table 1): 25,557,032 parameters.
#include "model.hpp"
#include "network/bottleneck.hpp"

namespace syncopate::train::model {
namespace {

Network build(Builder& builder, const ModelOptions& options) {
  return build_bottleneck_resnet(builder, {3, 4, 6, 3}, options.classes);
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
