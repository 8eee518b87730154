// ResNet-20 for CIFAR-10, option A shortcuts (He, Zhang, Ren, Sun 2016, section 4.2): 269,722 parameters.
#include "model.hpp"
#include "network/resnet.hpp"

namespace syncopate::train::model {
namespace {

// depth = 6 n + 2 = 20
Network build(Builder& builder, const ModelOptions& options) { return build_resnet(builder, 3, options.classes); }

}  // namespace

extern constinit const Model resnet20;
const Model resnet20{.name = "resnet20",
                     .summary = "residual network of depth 20 for 32x32 images, 269,722 parameters",
                     .input = DataKind::images,
                     .least_side = 28,
                     .learning_rate = 0.1,
                     .warmup = 20,
                     .build = build};

}  // namespace syncopate::train::model
