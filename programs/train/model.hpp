// The registry of models: the description that each file of model/ registers.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace syncopate::train {

struct Network;
class Builder;

enum class DataKind : std::uint8_t { images, text };

/// Options of models: sizes of the transformers and of mlp, GoogLeNet's auxiliary classifiers, and the number of
/// classes and the size of the images of an image model.
struct ModelOptions {
  int layers = 4;
  int width = 0;  ///< 0: the model's own
  int heads = 4;
  int context = 128;
  bool auxiliary = false;
  int classes = 0;  ///< from the data; 0: the model's own
  int side = 0;     ///< pixels of the images each way, from the data; 0: text
};

struct Model {
  std::string_view name;
  std::string_view summary;
  DataKind input = DataKind::images;
  int side = 32;               ///< pixels of the images in its paper
  int least_side = 32;         ///< smallest images that it accepts
  int most_side = 0;           ///< 0: any
  bool one_side = false;       ///< its weights depend on the side, so all parts of a recipe have the same
  int classes = 10;            ///< number of classes, unless the data state it
  double learning_rate = 0.1;  ///< default of --lr, for a global batch of about 128
  std::uint64_t warmup = 0;    ///< default of --warmup
  double clip = 0;             ///< default of --clip
  Network (*build)(Builder& builder, const ModelOptions& options) = nullptr;
};

[[nodiscard]] std::span<const Model* const> models();
[[nodiscard]] const Model& model_named(std::string_view name);  ///< throws Misuse, naming the allowed names
/// Throws Misuse if `model` does not accept images of `side` pixels each way (0: text); `resolution` is the option.
void require_side(const Model& model, int side, int resolution);

}  // namespace syncopate::train
