// A network as a value: named parameters, running statistics, and the function from a batch to its logits.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "random.hpp"
#include "syncopate/dtype.hpp"

namespace syncopate::train {

struct NamedTensor {
  std::string name;  ///< "layer1.0.conv1.weight"
  at::Tensor value;
};

/// Called with a parameter's index before the forward pass reads it: its weights may still be on their way here.
using BeforeUse = std::function<void(std::size_t parameter)>;

/// A trained tensor inside a layer. A layer reaches it by calling it, so that no model can read weights too early.
class Parameter final {
 public:
  Parameter() = default;
  Parameter(at::Tensor value, std::size_t index, std::shared_ptr<const BeforeUse> before_use)
      : value_(std::move(value)), index_(index), before_use_(std::move(before_use)) {}
  [[nodiscard]] const at::Tensor& operator()() const {
    if (*before_use_) (*before_use_)(index_);
    return value_;
  }

 private:
  at::Tensor value_;
  std::size_t index_ = 0;
  std::shared_ptr<const BeforeUse> before_use_;
};

struct Network {
  std::vector<NamedTensor> parameters;  ///< in forward order: the order of the gradients' arena
  std::vector<NamedTensor> buffers;     ///< batch-norm statistics: updated by `forward(x, true)`, never trained
  std::function<at::Tensor(const at::Tensor& input, bool training)> forward;
  std::shared_ptr<BeforeUse> before_use;  ///< what every layer calls; empty until somebody sets it
};

/// Of a contiguous f32 tensor, which must outlive it.
[[nodiscard]] inline Buffer view_of(const at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel()), DType::f32};
}

/// Moves tensors, in order, into one contiguous memory that the result owns a view of; the tensors keep their shapes.
[[nodiscard]] at::Tensor gather_in_one_memory(std::vector<NamedTensor>& tensors);

struct Convolution {
  Parameter weight;
  int stride = 1;
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const { return at::conv2d(x, weight(), {}, stride, 1); }
};

/// Normalises with the statistics of this rank's batch while training, with the running ones otherwise.
struct BatchNorm {
  Parameter weight, bias;
  at::Tensor mean, variance;
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x, bool training) const {
    return at::batch_norm(x, weight(), bias(), mean, variance, training, 0.1, 1e-5, false);
  }
};

struct Linear {
  Parameter weight, bias;
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const { return at::linear(x, weight(), bias()); }
};

struct LayerNorm {
  Parameter weight, bias;
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const {
    return at::layer_norm(x, {weight().size(0)}, weight(), bias());
  }
};

/// Makes layers and lists their tensors in the order of the calls, which therefore must be the forward order.
/// Initial values are uniform with the standard deviation of He et al. 2015 (convolution, linear), drawn from the seed.
class Builder final {
 public:
  explicit Builder(std::uint64_t seed) : random_({seed, 0x77656967687473}) {
    network_.before_use = std::make_shared<BeforeUse>();
  }

  Convolution convolution(const std::string& name, int in, int out, int stride = 1);  ///< 3x3, padding 1, no bias
  BatchNorm batch_norm(const std::string& name, int channels, float scale = 1);
  /// `gain` scales the standard deviation 1/sqrt(in): sqrt(2) before a ReLU.
  Linear linear(const std::string& name, int in, int out, double gain = 1);
  LayerNorm layer_norm(const std::string& name, int width);
  Parameter table(const std::string& name, int rows, int width, double deviation);  ///< of an embedding

  /// Ends the building: everything made so far, with the function that uses it.
  [[nodiscard]] Network finish(std::function<at::Tensor(const at::Tensor&, bool)> forward);

 private:
  Parameter parameter(std::string name, at::IntArrayRef shape, double deviation);
  Parameter constant(std::string name, int count, float value);
  Parameter add(std::string name, at::Tensor value);
  at::Tensor statistic(std::string name, int count, float value);

  Random random_;
  Network network_;
};

}  // namespace syncopate::train
