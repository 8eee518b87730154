// GoogLeNet (Szegedy et al. 2015) without dropout: 6,998,552 parameters, 13,378,280 with auxiliary classifiers.
#include "network/googlenet.hpp"

#include "model.hpp"

namespace syncopate::train::model {
namespace {

Network build(Builder& builder, const ModelOptions& options) {
  return build_googlenet(builder, {.kernel = 7, .stride = 2}, options);
}

}  // namespace

extern constinit const Model googlenet;
const Model googlenet{.name = "googlenet",
                      .summary = "GoogLeNet for photographs, 6,998,552 parameters; --auxiliary: 13,378,280",
                      .input = DataKind::images,
                      .side = 224,
                      .classes = 1000,
                      .learning_rate = 0.01,
                      .warmup = 50,
                      .build = build};

}  // namespace syncopate::train::model
