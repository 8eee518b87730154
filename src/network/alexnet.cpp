// AlexNet as Caffe has it, with convolutions in two groups; also with a first layer for images of 32 x 32.
#include "network/architecture.hpp"

namespace syncopate::network {
namespace {

struct AlexNetInput {
  std::uint64_t side, classes;
  Window first;  ///< of the first convolution
};

std::vector<Tensor> alexnet_tensors(const AlexNetInput& input) {
  TensorTable table;
  const Window pool(3, 2, 0);
  Volume volume = pool.over(table.convolve("conv1", {3, input.side, input.side}, {96, input.first, true}));
  volume = pool.over(table.convolve("conv2", volume, {256, Window(5, 1, 2), true, 2}));
  volume = table.convolve("conv3", volume, {384, Window(3, 1, 1), true});
  volume = table.convolve("conv4", volume, {384, Window(3, 1, 1), true, 2});
  volume = pool.over(table.convolve("conv5", volume, {256, Window(3, 1, 1), true, 2}));
  table.linear("fc6", {volume.elements(), 4096});
  table.linear("fc7", {4096, 4096});
  table.linear("fc8", {4096, input.classes});
  return std::move(table).tensors();
}

}  // namespace

extern constinit const Architecture alexnet{
    .name = "alexnet",
    .summary = "AlexNet with groups: 60 965 224 parameters",
    .source = "Krizhevsky, Sutskever & Hinton, NIPS 2012, as BVLC trained it",
    .tensors =
        [] {
          return alexnet_tensors({227, 1000, Window(11, 4, 0)});
        },
};

extern constinit const Architecture alexnet32{
    .name = "alexnet32",
    .summary = "AlexNet with groups for images of 32 x 32: 28 569 994 parameters",
    .source = "alexnet, with a first convolution of 5 x 5 and stride 1, and 10 classes",
    .tensors =
        [] {
          return alexnet_tensors({32, 10, Window(5, 1, 2)});
        },
};

}  // namespace syncopate::network
