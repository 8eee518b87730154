// Inception-v4: the stem and 4 + 7 + 3 blocks between reductions; a batch normalisation after every convolution.
#include "network/architecture.hpp"

namespace syncopate::network {
namespace {

/// One convolution of a branch. Sides other than 1 are padded to keep the size, unless `valid`.
struct Link {
  std::uint64_t channels, height = 1, width = 1, stride = 1;
  bool valid = false;
};
using Branch = std::vector<Link>;

class Net final {
 public:
  /// Parallel branches on the same input, whose outputs are concatenated with `pooled` channels of a pooling.
  void block(const std::string& name, const std::vector<Branch>& branches, bool keeps_input = false) {
    Volume output;
    std::uint64_t channels = keeps_input ? volume_.channels : 0;
    for (std::size_t branch = 0; branch < branches.size(); ++branch) {
      Volume at = volume_;
      for (std::size_t i = 0; i < branches[branch].size(); ++i)
        at = step(name + ".b" + std::to_string(branch) + "." + std::to_string(i), at, branches[branch][i]);
      output = at;
      channels += at.channels;
    }
    volume_ = {channels, output.height, output.width};
  }
  /// In block C the last link of a branch forks into 1x3 and 3x1.
  void fork(const std::string& name, const Branch& stem, std::uint64_t& channels) {
    Volume at = volume_;
    for (std::size_t i = 0; i < stem.size(); ++i) at = step(name + "." + std::to_string(i), at, stem[i]);
    channels += step(name + ".wide", at, {256, 1, 3}).channels + step(name + ".high", at, {256, 3, 1}).channels;
  }
  void block_c(const std::string& name) {
    std::uint64_t channels = step(name + ".b0", volume_, {256}).channels;
    fork(name + ".b1", {{384}}, channels);
    fork(name + ".b2", {{384}, {448, 3, 1}, {512, 1, 3}}, channels);
    channels += step(name + ".b3", volume_, {256}).channels;
    volume_.channels = channels;
  }
  std::vector<Tensor> classify() && {
    table_.linear("last_linear", {volume_.channels, 1000});
    return std::move(table_).tensors();
  }

 private:
  Volume step(const std::string& name, const Volume& from, const Link& link) {
    Window window(1, link.stride, 0);
    window.height = link.height, window.width = link.width;
    if (!link.valid) window.above = link.height / 2, window.left = link.width / 2;
    return table_.convolve_and_normalise(name, from, {link.channels, window});
  }

  TensorTable table_;
  Volume volume_{3, 299, 299};
};

std::vector<Tensor> inception_v4_tensors() {
  Net net;
  const Link halves{96, 3, 3, 2, true};
  net.block("1a", {{{32, 3, 3, 2, true}}});
  net.block("2a", {{{32, 3, 3, 1, true}}});
  net.block("2b", {{{64, 3, 3}}});
  net.block("3a", {{halves}}, true);
  net.block("4a", {{{64}, {96, 3, 3, 1, true}}, {{64}, {64, 1, 7}, {64, 7, 1}, {96, 3, 3, 1, true}}});
  net.block("5a", {{{192, 3, 3, 2, true}}}, true);
  for (const char* name : {"5b", "5c", "5d", "5e"})
    net.block(name, {{{96}}, {{64}, {96, 3, 3}}, {{64}, {96, 3, 3}, {96, 3, 3}}, {{96}}});
  net.block("6a", {{{384, 3, 3, 2, true}}, {{192}, {224, 3, 3}, {256, 3, 3, 2, true}}}, true);
  for (const char* name : {"6b", "6c", "6d", "6e", "6f", "6g", "6h"})
    net.block(name, {{{384}},
                     {{192}, {224, 1, 7}, {256, 7, 1}},
                     {{192}, {192, 7, 1}, {224, 1, 7}, {224, 7, 1}, {256, 1, 7}},
                     {{128}}});
  net.block("7a", {{{192}, {192, 3, 3, 2, true}}, {{256}, {256, 1, 7}, {320, 7, 1}, {320, 3, 3, 2, true}}}, true);
  for (const char* name : {"7b", "7c", "7d"}) net.block_c(name);
  return std::move(net).classify();
}

constexpr std::uint64_t kClasses = 1000;

/// As TF-slim trains it: normalisations without scales, and an additional background class.
std::vector<Tensor> slim_tensors() {
  std::vector<Tensor> slim;
  for (Tensor tensor : inception_v4_tensors()) {
    const std::string_view name = tensor.name;
    if (name.ends_with(".bn.weight")) continue;
    if (name.starts_with("last_linear.")) {
      tensor.elements += tensor.elements / kClasses;
      tensor.flops += tensor.flops / kClasses;
    }
    slim.push_back(std::move(tensor));
  }
  return slim;
}

}  // namespace

extern constinit const Architecture inception_v4{
    .name = "inception_v4",
    .summary = "Inception-v4: 42 679 816 parameters in 449 tensors",
    .source = "Szegedy et al., AAAI 2017",
    .tensors = inception_v4_tensors,
};

extern constinit const Architecture inception_v4_slim{
    .name = "inception_v4_slim",
    .summary =
        "Inception-v4 of TF-slim: 42 649 769 parameters in 300 tensors, normalisations without scales, 1001 classes",
    .source = "tensorflow/models, research/slim/nets/inception_v4.py",
    .tensors = slim_tensors,
};

}  // namespace syncopate::network
