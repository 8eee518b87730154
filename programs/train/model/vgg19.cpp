// VGG-19 (Simonyan, Zisserman 2015, configuration E), without dropout: 143,667,240 parameters.
#include "model.hpp"
#include "network/vgg.hpp"

namespace syncopate::train::model {
namespace {

Network build(Builder& builder, const ModelOptions& options) {
  return build_vgg(builder, {2, 2, 4, 4, 4}, options.classes);
}

}  // namespace

extern constinit const Model vgg19;
const Model vgg19{.name = "vgg19",
                  .summary = "VGG-19 for photographs, 143,667,240 parameters, 72 % of them in one layer",
                  .input = DataKind::images,
                  .side = 224,
                  .classes = 1000,
                  .learning_rate = 0.01,
                  .warmup = 50,
                  .build = build};

}  // namespace syncopate::train::model
