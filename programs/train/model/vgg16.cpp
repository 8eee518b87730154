// VGG-16 (Simonyan, Zisserman 2015, configuration D), without dropout: 138,357,544 parameters.
#include "model.hpp"
#include "network/vgg.hpp"

namespace syncopate::train::model {
namespace {

Network build(Builder& builder, const ModelOptions& options) {
  return build_vgg(builder, {2, 2, 3, 3, 3}, options.classes);
}

}  // namespace

extern constinit const Model vgg16;
const Model vgg16{.name = "vgg16",
                  .summary = "VGG-16 for photographs, 138,357,544 parameters, 74 % of them in one layer",
                  .input = DataKind::images,
                  .side = 224,
                  .classes = 1000,
                  .learning_rate = 0.01,
                  .warmup = 50,
                  .build = build};

}  // namespace syncopate::train::model
