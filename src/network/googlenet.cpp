// GoogLeNet with and without the two classifiers of training; also with a first layer for images of 32 x 32.
#include "network/architecture.hpp"

namespace syncopate::network {
namespace {

/// Four parallel branches: 1x1, 3x3 after a reduction, 5x5 after a reduction, and a projection after pooling.
struct Inception {
  const char* name;
  std::uint64_t one, reduce_three, three, reduce_five, five, projection;
};

Volume inception(TensorTable& table, const Volume& input, const Inception& sizes) {
  const std::string prefix = std::string("inception_") + sizes.name + "/";
  const auto branch = [&](const char* name, const Volume& from, std::uint64_t channels, std::uint64_t side) {
    return table.convolve(prefix + name, from, {channels, Window(side, 1, side / 2), true});
  };
  std::uint64_t channels = branch("1x1", input, sizes.one, 1).channels;
  channels += branch("3x3", branch("3x3_reduce", input, sizes.reduce_three, 1), sizes.three, 3).channels;
  channels += branch("5x5", branch("5x5_reduce", input, sizes.reduce_five, 1), sizes.five, 5).channels;
  channels += branch("pool_proj", input, sizes.projection, 1).channels;
  return {channels, input.height, input.width};
}

Window caffe_pool(std::uint64_t side, std::uint64_t stride) {
  Window window(side, stride, 0);
  window.rounds_up = true;
  return window;
}

void auxiliary_classifier(TensorTable& table, const Volume& input, const std::string& name) {
  const Volume pooled = caffe_pool(5, 3).over(input);
  const Volume output = table.convolve(name + "/conv", pooled, {128, Window(1, 1, 0), true});
  table.linear(name + "/fc", {output.elements(), 1024});
  table.linear(name + "/classifier", {1024, 1000});
}

struct GoogLeNetInput {
  std::uint64_t side, classes;
  std::uint64_t kernel, stride;  ///< of the first convolution
};
constexpr GoogLeNetInput kPhotographs{224, 1000, 7, 2};

std::vector<Tensor> googlenet_tensors(const GoogLeNetInput& input, bool with_auxiliary_classifiers) {
  TensorTable table;
  const std::string side = std::to_string(input.kernel);
  Volume volume =
      table.convolve("conv1/" + side + "x" + side + "_s" + std::to_string(input.stride), {3, input.side, input.side},
                     {64, Window(input.kernel, input.stride, input.kernel / 2), true});
  volume = caffe_pool(3, 2).over(volume);
  volume = table.convolve("conv2/3x3_reduce", volume, {64, Window(1, 1, 0), true});
  volume = caffe_pool(3, 2).over(table.convolve("conv2/3x3", volume, {192, Window(3, 1, 1), true}));
  volume = inception(table, volume, {"3a", 64, 96, 128, 16, 32, 32});
  volume = caffe_pool(3, 2).over(inception(table, volume, {"3b", 128, 128, 192, 32, 96, 64}));
  volume = inception(table, volume, {"4a", 192, 96, 208, 16, 48, 64});
  if (with_auxiliary_classifiers) auxiliary_classifier(table, volume, "loss1");
  volume = inception(table, volume, {"4b", 160, 112, 224, 24, 64, 64});
  volume = inception(table, volume, {"4c", 128, 128, 256, 24, 64, 64});
  volume = inception(table, volume, {"4d", 112, 144, 288, 32, 64, 64});
  if (with_auxiliary_classifiers) auxiliary_classifier(table, volume, "loss2");
  volume = caffe_pool(3, 2).over(inception(table, volume, {"4e", 256, 160, 320, 32, 128, 128}));
  volume = inception(table, volume, {"5a", 256, 160, 320, 32, 128, 128});
  volume = inception(table, volume, {"5b", 384, 192, 384, 48, 128, 128});
  table.linear("loss3/classifier", {volume.channels, input.classes});
  return std::move(table).tensors();
}

}  // namespace

extern constinit const Architecture googlenet{
    .name = "googlenet",
    .summary = "GoogLeNet without auxiliary classifiers: 6 998 552 parameters",
    .source = "Szegedy et al., CVPR 2015, as BVLC trained it",
    .tensors = [] { return googlenet_tensors(kPhotographs, false); },
};

extern constinit const Architecture googlenet32{
    .name = "googlenet32",
    .summary = "GoogLeNet without auxiliary classifiers for images of 32 x 32: 5 979 194 parameters",
    .source = "googlenet, with a first convolution of 5 x 5 and stride 1, and 10 classes",
    .tensors =
        [] {
          return googlenet_tensors({32, 10, 5, 1}, false);
        },
};

extern constinit const Architecture googlenet_aux{
    .name = "googlenet_aux",
    .summary = "GoogLeNet with both auxiliary classifiers: 13 378 280 parameters",
    .source = "Szegedy et al., CVPR 2015, as BVLC trained it",
    .tensors = [] { return googlenet_tensors(kPhotographs, true); },
};

}  // namespace syncopate::network
