// AlexNet as Caffe has it: its second, fourth and fifth convolution in two groups.
#include "network/architecture.hpp"

namespace syncopate::network {
namespace {

std::vector<Tensor> alexnet_tensors() {
  TensorTable table;
  const Window pool(3, 2, 0);
  Volume volume = pool.over(table.convolve("conv1", {3, 227, 227}, {96, Window(11, 4, 0), true}));
  volume = pool.over(table.convolve("conv2", volume, {256, Window(5, 1, 2), true, 2}));
  volume = table.convolve("conv3", volume, {384, Window(3, 1, 1), true});
  volume = table.convolve("conv4", volume, {384, Window(3, 1, 1), true, 2});
  volume = pool.over(table.convolve("conv5", volume, {256, Window(3, 1, 1), true, 2}));
  table.linear("fc6", {volume.elements(), 4096});
  table.linear("fc7", {4096, 4096});
  table.linear("fc8", {4096, 1000});
  return std::move(table).tensors();
}

}  // namespace

extern constinit const Architecture alexnet{
    .name = "alexnet",
    .summary = "AlexNet with groups: 60 965 224 parameters",
    .source = "Krizhevsky, Sutskever & Hinton, NIPS 2012, as BVLC trained it",
    .tensors = alexnet_tensors,
};

}  // namespace syncopate::network
