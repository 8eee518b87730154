// Architecture: the learnable tensors of a published network and their operations.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate::network {

/// FLOPs of the forward pass per sample: two per multiply-add of a convolution, a linear layer or an attention matrix
/// (attention counts with the projection that follows it), one per element for a bias, four for a batch normalisation
/// and eight for a layer normalisation. Activations, pooling and additions are not counted.
struct Tensor {
  std::string name;
  std::uint64_t elements = 0;
  double flops = 0;
};

struct Architecture {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  std::vector<Tensor> (*tensors)();  ///< in forward order
};

/// Every architecture, by name.
[[nodiscard]] std::span<const Architecture* const> architectures();
[[nodiscard]] const Architecture& architecture_named(std::string_view name);  ///< throws Misuse that lists them

/// Merges tensors that become ready together: "conv1.weight" and "conv1.bias" become "conv1".
[[nodiscard]] std::vector<Tensor> layers_of(const std::vector<Tensor>& tensors);

/// The activations between two layers of an image network, for one sample.
struct Volume {
  std::uint64_t channels = 0, height = 0, width = 0;
  [[nodiscard]] std::uint64_t elements() const { return channels * height * width; }
};

struct Window {
  std::uint64_t height = 1, width = 1;
  std::uint64_t stride = 1;
  std::uint64_t above = 0, left = 0;  ///< padding above and left; equal below and right
  bool rounds_up = false;             ///< the last position may reach over the edge (Caffe's pooling)

  Window() = default;
  Window(std::uint64_t side, std::uint64_t step, std::uint64_t padding)
      : height(side), width(side), stride(step), above(padding), left(padding) {}
  [[nodiscard]] Volume over(const Volume& input) const;  ///< keeps the number of channels
};

/// Records an architecture, tensor by tensor.
class TensorTable final {
 public:
  struct Convolution {
    std::uint64_t channels = 0;
    Window window;
    bool has_bias = false;
    std::uint64_t groups = 1;
  };
  /// Returns the output volume.
  Volume convolve(const std::string& name, const Volume& input, const Convolution& convolution);
  void normalise(const std::string& name, const Volume& volume);  ///< batch normalisation: weight and bias
  Volume convolve_and_normalise(const std::string& name, const Volume& input, const Convolution& convolution);

  struct Linear {
    std::uint64_t inputs = 0, outputs = 0;
    bool has_bias = true;
    std::uint64_t times = 1;  ///< tokens per sample
    double more_flops = 0;    ///< FLOPs of the attention matrices before it, which have no parameters
  };
  void linear(const std::string& name, const Linear& linear);
  void layer_norm(const std::string& name, std::uint64_t width, std::uint64_t tokens);
  void embed(const std::string& name, std::uint64_t words, std::uint64_t width, double flops);

  [[nodiscard]] std::vector<Tensor> tensors() && { return std::move(tensors_); }

 private:
  std::vector<Tensor> tensors_;
};

}  // namespace syncopate::network
