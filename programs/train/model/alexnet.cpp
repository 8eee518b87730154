// AlexNet with two groups (Krizhevsky, Sutskever, Hinton 2012), without dropout: 60,965,224 parameters.
#include "network/alexnet.hpp"

#include "model.hpp"

namespace syncopate::train::model {
namespace {

Network build(Builder& builder, const ModelOptions& options) {
  return build_alexnet(builder, {.kernel = 11, .stride = 4, .same = false, .side = 6}, options.classes);
}

}  // namespace

extern constinit const Model alexnet;
const Model alexnet{
    .name = "alexnet",
    .summary = "AlexNet for photographs, with two groups, 60,965,224 parameters, 96 % of them in its linear layers",
    .input = DataKind::images,
    .side = 227,
    .least_side = 67,
    .classes = 1000,
    .learning_rate = 0.01,
    .warmup = 50,
    .build = build};

}  // namespace syncopate::train::model
