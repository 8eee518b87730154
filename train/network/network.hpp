// A network as a value: named parameters, running statistics, and the function from a batch to its logits.
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <functional>
#include <memory>
#include <numbers>
#include <optional>
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

/// What a network says of a batch, and the targets that this answers.
struct Answer {
  at::Tensor logits, target;
  double weight = 1;  ///< of its cross entropy in the loss
};

struct Network {
  using Forward = std::function<at::Tensor(const at::Tensor& input, bool training)>;
  using Answers = std::function<std::vector<Answer>(const at::Tensor& input, const at::Tensor& target, bool training)>;

  std::vector<NamedTensor> parameters;    ///< in forward order: the order of the gradients' arena
  std::vector<NamedTensor> buffers;       ///< batch-norm statistics: updated while training, never trained
  Answers answers;                        ///< the first is what is evaluated; others only while training
  std::shared_ptr<BeforeUse> before_use;  ///< what every layer calls; empty until somebody sets it

  /// What training minimises: the answers' mean cross entropies by their weights.
  [[nodiscard]] at::Tensor loss(const at::Tensor& input, const at::Tensor& target) const;
};

/// Of a contiguous f32 tensor, which must outlive it.
[[nodiscard]] inline Buffer view_of(const at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel()), DType::f32};
}

/// Moves tensors, in order, into one contiguous memory that the result owns a view of; the tensors keep their shapes.
[[nodiscard]] at::Tensor gather_in_one_memory(std::vector<NamedTensor>& tensors);

struct ConvolutionShape {
  int in = 0, out = 0;
  std::array<int, 2> kernel{3, 3};
  int stride = 1;
  bool same = true;  ///< zeros around the image, so that stride 1 keeps its size; else none
  int groups = 1;
  bool bias = false;  ///< where no normalisation follows
};

struct Convolution {
  Parameter weight;
  std::optional<Parameter> bias;
  ConvolutionShape shape;
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const;
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
  Parameter weight;
  std::optional<Parameter> bias;
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const;
};

struct LayerNorm {
  Parameter weight, bias;
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const {
    return at::layer_norm(x, {weight().size(0)}, weight(), bias());
  }
};

/// Gain of a linear layer whose result a ReLU halves.
inline constexpr double kBeforeRelu = std::numbers::sqrt2;

/// Makes layers and lists their tensors in the order of the calls, which therefore must be the forward order.
/// Initial values are uniform with the standard deviation of He et al. 2015 (convolution, linear), drawn from the seed.
class Builder final {
 public:
  explicit Builder(std::uint64_t seed) : random_({seed, 0x77656967687473}) {
    network_.before_use = std::make_shared<BeforeUse>();
  }

  Convolution convolution(const std::string& name, const ConvolutionShape& shape);
  BatchNorm batch_norm(const std::string& name, int channels, float scale = 1);
  /// `gain` scales the standard deviation 1/sqrt(in): kBeforeRelu before a ReLU.
  Linear linear(const std::string& name, int in, int out, double gain = 1);
  Linear projection(const std::string& name, int in, int out);  ///< without bias, of gain 1
  LayerNorm layer_norm(const std::string& name, int width);
  Parameter table(const std::string& name, int rows, int width, double deviation);  ///< of an embedding

  /// Ends the building: everything made so far, with the function that uses it.
  [[nodiscard]] Network finish(Network::Forward forward);
  [[nodiscard]] Network finish_with(Network::Answers answers);

 private:
  Parameter parameter(std::string name, at::IntArrayRef shape, double deviation);
  Parameter constant(std::string name, int count, float value);
  Parameter add(std::string name, at::Tensor value);
  at::Tensor statistic(std::string name, int count, float value);

  Random random_;
  Network network_;
};

}  // namespace syncopate::train
