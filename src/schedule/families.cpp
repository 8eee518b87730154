// Families of architectures: residual networks for CIFAR, VGG, and GoogLeNet with and without auxiliary classifiers.
#include "schedule/architecture.hpp"

namespace syncopate::schedule {

namespace {

/// Four parallel branches: 1x1, 3x3 after a reduction, 5x5 after a reduction, and a projection after pooling.
struct Inception {
  const char* name;
  std::uint64_t one, reduce_three, three, reduce_five, five, projection;
};

Volume inception(TensorTable& notebook, const Volume& input, const Inception& sizes) {
  const std::string prefix = std::string("inception_") + sizes.name + "/";
  const auto branch = [&](const char* name, const Volume& from, std::uint64_t channels, std::uint64_t side) {
    return notebook.convolve(prefix + name, from, {channels, Window(side, 1, side / 2), true});
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

void auxiliary_classifier(TensorTable& notebook, const Volume& input, const std::string& name) {
  const Volume pooled = caffe_pool(5, 3).over(input);
  const Volume output = notebook.convolve(name + "/conv", pooled, {128, Window(1, 1, 0), true});
  notebook.linear(name + "/fc", {output.elements(), 1024});
  notebook.linear(name + "/classifier", {1024, 1000});
}

}  // namespace

// He et al., CVPR 2016, section 4.2, shortcuts without parameters (option A).
std::vector<Tensor> cifar_resnet(std::uint64_t blocks_a_stage) {
  TensorTable notebook;
  Volume volume = notebook.convolve("conv1", {3, 32, 32}, {16, Window(3, 1, 1)});
  notebook.normalise("bn1", volume);
  for (std::uint64_t stage = 0; stage < 3; ++stage)
    for (std::uint64_t block = 0; block < blocks_a_stage; ++block) {
      const std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(block);
      const std::uint64_t channels = std::uint64_t{16} << stage, stride = block == 0 && stage > 0 ? 2 : 1;
      volume = notebook.convolve(name + ".conv1", volume, {channels, Window(3, stride, 1)});
      notebook.normalise(name + ".bn1", volume);
      volume = notebook.convolve(name + ".conv2", volume, {channels, Window(3, 1, 1)});
      notebook.normalise(name + ".bn2", volume);
    }
  notebook.linear("fc", {volume.channels, 10});
  return std::move(notebook).tensors();
}

// Simonyan & Zisserman, ICLR 2015.
std::vector<Tensor> vgg(std::span<const std::uint64_t> channels) {
  TensorTable notebook;
  Volume volume{3, 224, 224};
  int index = 0;
  for (const std::uint64_t count : channels) {
    const std::string name = "features." + std::to_string(index);
    volume =
        count == 0 ? Window(2, 2, 0).over(volume) : notebook.convolve(name, volume, {count, Window(3, 1, 1), true});
    index += count == 0 ? 1 : 2;
  }
  notebook.linear("classifier.0", {volume.elements(), 4096});
  notebook.linear("classifier.3", {4096, 4096});
  notebook.linear("classifier.6", {4096, 1000});
  return std::move(notebook).tensors();
}

// Szegedy et al., CVPR 2015, as BVLC's train_val.prototxt has it: biases, no batch normalisation.
std::vector<Tensor> bvlc_googlenet(bool with_auxiliary_classifiers) {
  TensorTable notebook;
  Volume volume = notebook.convolve("conv1/7x7_s2", {3, 224, 224}, {64, Window(7, 2, 3), true});
  volume = caffe_pool(3, 2).over(volume);
  volume = notebook.convolve("conv2/3x3_reduce", volume, {64, Window(1, 1, 0), true});
  volume = caffe_pool(3, 2).over(notebook.convolve("conv2/3x3", volume, {192, Window(3, 1, 1), true}));
  volume = inception(notebook, volume, {"3a", 64, 96, 128, 16, 32, 32});
  volume = caffe_pool(3, 2).over(inception(notebook, volume, {"3b", 128, 128, 192, 32, 96, 64}));
  volume = inception(notebook, volume, {"4a", 192, 96, 208, 16, 48, 64});
  if (with_auxiliary_classifiers) auxiliary_classifier(notebook, volume, "loss1");
  volume = inception(notebook, volume, {"4b", 160, 112, 224, 24, 64, 64});
  volume = inception(notebook, volume, {"4c", 128, 128, 256, 24, 64, 64});
  volume = inception(notebook, volume, {"4d", 112, 144, 288, 32, 64, 64});
  if (with_auxiliary_classifiers) auxiliary_classifier(notebook, volume, "loss2");
  volume = caffe_pool(3, 2).over(inception(notebook, volume, {"4e", 256, 160, 320, 32, 128, 128}));
  volume = inception(notebook, volume, {"5a", 256, 160, 320, 32, 128, 128});
  volume = inception(notebook, volume, {"5b", 384, 192, 384, 48, 128, 128});
  notebook.linear("loss3/classifier", {volume.channels, 1000});
  return std::move(notebook).tensors();
}

}  // namespace syncopate::schedule
