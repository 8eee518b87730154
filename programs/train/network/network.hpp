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

/// Called with a parameter's index before the forward pass reads it, because its weights may not have arrived yet.
using BeforeUse = std::function<void(std::size_t parameter)>;

/// A trained tensor of a layer. Layers read it only by a call, so no model can read weights too early.
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

/// Logits of a network for a batch, with the targets that they predict.
struct Answer {
  at::Tensor logits, target;
  double weight = 1;  ///< of its cross entropy in the loss
};

struct Network {
  using Forward = std::function<at::Tensor(const at::Tensor& input, bool training)>;
  using Answers = std::function<std::vector<Answer>(const at::Tensor& input, const at::Tensor& target, bool training)>;

  std::vector<NamedTensor> parameters;    ///< in forward order: the order of the gradients' arena
  std::vector<NamedTensor> buffers;       ///< batch-norm statistics: updated during training, without gradients
  Answers answers;                        ///< the first one is evaluated; the others exist only during training
  std::shared_ptr<BeforeUse> before_use;  ///< called by every layer; empty until it is set

  /// The training loss: the weighted sum of the answers' mean cross entropies.
  [[nodiscard]] at::Tensor loss(const at::Tensor& input, const at::Tensor& target) const;
};

/// A view of a contiguous f32 tensor, which must outlive it.
[[nodiscard]] inline Buffer view_of(const at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel()), DType::f32};
}

/// Moves tensors, in order, into one contiguous memory, and returns a view of it; the tensors keep their shapes.
[[nodiscard]] at::Tensor gather_in_one_memory(std::vector<NamedTensor>& tensors);

struct ConvolutionShape {
  int in = 0, out = 0;
  std::array<int, 2> kernel{3, 3};
  int stride = 1;
  bool same = true;  ///< zero padding that keeps the size at stride 1; else no padding
  int groups = 1;
  bool bias = false;  ///< for layers without a normalisation after them
};

struct Convolution {
  Parameter weight;
  std::optional<Parameter> bias;
  ConvolutionShape shape;
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const;
};

/// Normalises with the statistics of this rank's batch during training, else with the running statistics.
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

/// Gain of a linear layer before a ReLU, which halves the second moment.
inline constexpr double kBeforeRelu = std::numbers::sqrt2;

/// Initial scale of a residual block's branch, which is added to its shortcut: stabilises the first steps of deep
/// networks (Goyal et al. 2017 use 0).
inline constexpr float kBranchScale = 0.5F;

/// Makes layers and lists their tensors in the order of the calls, which must be the forward order. Initial values are
/// uniform with the standard deviation of He et al. 2015 (convolution, linear), drawn from the seed.
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
  Parameter table(const std::string& name, int rows, int width, double deviation);  ///< an embedding

  /// Ends building: returns the network of all layers made, with its forward function.
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
