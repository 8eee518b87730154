// GoogLeNet for 32x32 images: the first convolution is 5x5 with stride 1: 5,979,194 parameters.
#include "model.hpp"
#include "network/googlenet.hpp"

namespace syncopate::train::model {
namespace {

Network build(Builder& builder, const ModelOptions& options) {
  return build_googlenet(builder, {.kernel = 5, .stride = 1}, options);
}

}  // namespace

extern constinit const Model googlenet32;
const Model googlenet32{.name = "googlenet32",
                        .summary = "GoogLeNet for 32x32 images, 5,979,194 parameters",
                        .input = DataKind::images,
                        .least_side = 28,
                        .learning_rate = 0.01,
                        .warmup = 50,
                        .build = build};

}  // namespace syncopate::train::model
