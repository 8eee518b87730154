// Architecture: the list of networks, and the parameters and operations of their layers.
#include "network/architecture.hpp"

#include "base/named.hpp"

namespace syncopate::network {

extern const Architecture alexnet, alexnet32, bert_base, densenet40, googlenet, googlenet32, googlenet_aux,
    inception_v4, inception_v4_slim, resnet101, resnet110, resnet20, resnet50, transformer_base, vgg16, vgg19;

std::span<const Architecture* const> architectures() {
  static constexpr const Architecture* kByName[] = {
      &alexnet,           &alexnet32,        &bert_base,     &densenet40,
      &googlenet,         &googlenet32,      &googlenet_aux, &inception_v4,
      &inception_v4_slim, &resnet101,        &resnet110,     &resnet20,
      &resnet50,          &transformer_base, &vgg16,         &vgg19};
  return kByName;
}

const Architecture& architecture_named(std::string_view name) {
  return base::entry_named("architecture", name, architectures());
}

std::vector<Tensor> layers_of(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> layers;
  for (const Tensor& tensor : tensors) {
    const std::string name = tensor.name.substr(0, tensor.name.rfind('.'));
    if (layers.empty() || layers.back().name != name) layers.push_back({name, 0, 0});
    layers.back().elements += tensor.elements;
    layers.back().flops += tensor.flops;
  }
  return layers;
}

Volume Window::over(const Volume& input) const {
  const std::uint64_t slack = rounds_up ? stride - 1 : 0;
  return {input.channels, (input.height + 2 * above - height + slack) / stride + 1,
          (input.width + 2 * left - width + slack) / stride + 1};
}

Volume TensorTable::convolve(const std::string& name, const Volume& input, const Convolution& convolution) {
  const Window& window = convolution.window;
  Volume output = window.over(input);
  output.channels = convolution.channels;
  const std::uint64_t weights = output.channels * (input.channels / convolution.groups) * window.height * window.width;
  tensors_.push_back({name + ".weight", weights, 2.0 * static_cast<double>(weights * output.height * output.width)});
  if (convolution.has_bias)
    tensors_.push_back({name + ".bias", output.channels, static_cast<double>(output.elements())});
  return output;
}

void TensorTable::normalise(const std::string& name, const Volume& volume) {
  const double flops = 2.0 * static_cast<double>(volume.elements());
  tensors_.push_back({name + ".weight", volume.channels, flops});
  tensors_.push_back({name + ".bias", volume.channels, flops});
}

Volume TensorTable::convolve_and_normalise(const std::string& name, const Volume& input,
                                           const Convolution& convolution) {
  const Volume output = convolve(name + ".conv", input, convolution);
  normalise(name + ".bn", output);
  return output;
}

void TensorTable::linear(const std::string& name, const Linear& linear) {
  const std::uint64_t weights = linear.inputs * linear.outputs;
  tensors_.push_back(
      {name + ".weight", weights, 2.0 * static_cast<double>(weights * linear.times) + linear.more_flops});
  if (linear.has_bias)
    tensors_.push_back({name + ".bias", linear.outputs, static_cast<double>(linear.outputs * linear.times)});
}

void TensorTable::layer_norm(const std::string& name, std::uint64_t width, std::uint64_t tokens) {
  const double flops = 4.0 * static_cast<double>(width * tokens);
  tensors_.push_back({name + ".weight", width, flops});
  tensors_.push_back({name + ".bias", width, flops});
}

void TensorTable::embed(const std::string& name, std::uint64_t words, std::uint64_t width, double flops) {
  tensors_.push_back({name + ".weight", words * width, flops});
}

}  // namespace syncopate::network
