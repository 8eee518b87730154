// A linear classifier, 3072-10 for 32x32 images: a baseline of what is learnt from pixels without shapes.
#include "model.hpp"
#include "network/network.hpp"

namespace syncopate::train::model {
namespace {

Network build(Builder& builder, const ModelOptions& options) {
  const Linear fc = builder.linear("fc", 3 * options.side * options.side, options.classes);
  return builder.finish([=](const at::Tensor& images, bool) { return fc(images.flatten(1)); });
}

}  // namespace

extern constinit const Model linear;
const Model linear{.name = "linear",
                   .summary = "linear classifier 3072-10, 123 kB of gradients",
                   .input = DataKind::images,
                   .least_side = 28,
                   .most_side = 32,
                   .one_side = true,
                   .learning_rate = 0.01,
                   .warmup = 0,
                   .build = build};

}  // namespace syncopate::train::model
