// Builds networks: initial values, names, and one contiguous memory for all parameters.
#include "network/network.hpp"

#include <cmath>

namespace syncopate::train {

at::Tensor gather_in_one_memory(std::vector<NamedTensor>& tensors) {
  const at::NoGradGuard no_grad;
  std::int64_t total = 0;
  for (const NamedTensor& tensor : tensors) total += tensor.value.numel();
  at::Tensor memory = at::empty({total}, at::kFloat);
  std::int64_t offset = 0;
  for (NamedTensor& tensor : tensors) {
    const std::int64_t count = tensor.value.numel();
    at::Tensor place = memory.narrow(0, offset, count).view(tensor.value.sizes());
    place.copy_(tensor.value);
    tensor.value.set_data(place);
    offset += count;
  }
  return memory;
}

at::Tensor Network::loss(const at::Tensor& input, const at::Tensor& target) const {
  at::Tensor sum;
  for (const Answer& answer : answers(input, target, true)) {
    at::Tensor one = at::cross_entropy_loss(answer.logits, answer.target);
    if (answer.weight != 1) one = one * answer.weight;
    sum = sum.defined() ? sum + one : one;
  }
  return sum;
}

at::Tensor Convolution::operator()(const at::Tensor& x) const {
  const std::array<std::int64_t, 2> padding{shape.same ? shape.kernel[0] / 2 : 0, shape.same ? shape.kernel[1] / 2 : 0};
  return at::conv2d(x, weight(), bias ? (*bias)() : at::Tensor(), shape.stride, padding, 1, shape.groups);
}

at::Tensor Linear::operator()(const at::Tensor& x) const {
  return at::linear(x, weight(), bias ? (*bias)() : at::Tensor());
}

Parameter Builder::parameter(std::string name, at::IntArrayRef shape, double deviation) {
  at::Tensor value = at::empty(shape, at::kFloat);
  const auto half_width = static_cast<float>(deviation * std::sqrt(3.0));
  float* const data = value.data_ptr<float>();
  for (std::int64_t i = 0; i < value.numel(); ++i) data[i] = random_.symmetric(half_width);
  return add(std::move(name), value);
}

Parameter Builder::constant(std::string name, int count, float value) {
  return add(std::move(name), at::full({count}, value, at::kFloat));
}

Parameter Builder::add(std::string name, at::Tensor value) {
  const std::size_t index = network_.parameters.size();
  network_.parameters.push_back({std::move(name), value.set_requires_grad(true)});
  return {std::move(value), index, network_.before_use};
}

at::Tensor Builder::statistic(std::string name, int count, float value) {
  at::Tensor tensor = at::full({count}, value, at::kFloat);
  network_.buffers.push_back({std::move(name), tensor});
  return tensor;
}

// The gain keeps the variance of the backward pass if a normalisation follows, else that of the forward pass.
Convolution Builder::convolution(const std::string& name, const ConvolutionShape& shape) {
  const auto [height, width] = shape.kernel;
  const int in = shape.in / shape.groups;
  const double fan = static_cast<double>(height) * width * (shape.bias ? in : shape.out);
  Convolution made{parameter(name + ".weight", {shape.out, in, height, width}, std::sqrt(2.0 / fan)), {}, shape};
  if (shape.bias) made.bias = constant(name + ".bias", shape.out, 0);
  return made;
}

BatchNorm Builder::batch_norm(const std::string& name, int channels, float scale) {
  return {constant(name + ".weight", channels, scale), constant(name + ".bias", channels, 0),
          statistic(name + ".running_mean", channels, 0), statistic(name + ".running_var", channels, 1)};
}

Linear Builder::linear(const std::string& name, int in, int out, double gain) {
  return {parameter(name + ".weight", {out, in}, gain / std::sqrt(in)), constant(name + ".bias", out, 0)};
}

Linear Builder::projection(const std::string& name, int in, int out) {
  return {parameter(name + ".weight", {out, in}, 1 / std::sqrt(in)), {}};
}

LayerNorm Builder::layer_norm(const std::string& name, int width) {
  return {constant(name + ".weight", width, 1), constant(name + ".bias", width, 0)};
}

Parameter Builder::table(const std::string& name, int rows, int width, double deviation) {
  return parameter(name + ".weight", {rows, width}, deviation);
}

Network Builder::finish(Network::Forward forward) {
  return finish_with([forward = std::move(forward)](const at::Tensor& input, const at::Tensor& target, bool training) {
    return std::vector<Answer>{{forward(input, training), target}};
  });
}

Network Builder::finish_with(Network::Answers answers) {
  network_.answers = std::move(answers);
  return std::move(network_);
}

}  // namespace syncopate::train
