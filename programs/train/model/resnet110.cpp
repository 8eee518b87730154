// ResNet-110 for CIFAR-10, option A shortcuts (He, Zhang, Ren, Sun 2016, section 4.2): 1,727,962 parameters.
#include "model.hpp"
#include "network/resnet.hpp"

namespace syncopate::train::model {
namespace {

// depth = 6 n + 2 = 110
Network build(Builder& builder, const ModelOptions& options) { return build_resnet(builder, 18, options.classes); }

}  // namespace

extern constinit const Model resnet110;
const Model resnet110{.name = "resnet110",
                      .summary = "residual network of depth 110 for 32x32 images, 1,727,962 parameters",
                      .input = DataKind::images,
                      .least_side = 28,
                      .learning_rate = 0.1,
                      .warmup = 100,
                      .build = build};

}  // namespace syncopate::train::model
