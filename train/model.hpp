// The shelf of models: what an entry of train/model says about itself.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace syncopate::train {

struct Network;
class Builder;

enum class DataKind : std::uint8_t { images, text };

/// What can be chosen of a model: sizes of the transformers, whether GoogLeNet has its auxiliary classifiers, and how
/// many labels a model of images tells apart.
struct ModelOptions {
  int layers = 4;
  int width = 256;
  int heads = 4;
  int context = 128;
  bool auxiliary = false;
  int classes = 0;  ///< the data's, or the model's own
};

struct Model {
  std::string_view name;
  std::string_view summary;
  DataKind input = DataKind::images;
  int side = 32;               ///< pixels, of its paper's images
  int least_side = 32;         ///< of images that it can take
  int most_side = 0;           ///< 0: any
  int classes = 10;            ///< labels it tells apart, unless the data say how many
  double learning_rate = 0.1;  ///< default of --lr: right for a global batch of about 128
  std::uint64_t warmup = 0;    ///< default of --warmup
  double clip = 0;             ///< default of --clip
  Network (*build)(Builder& builder, const ModelOptions& options) = nullptr;
};

[[nodiscard]] std::span<const Model* const> models();
[[nodiscard]] const Model& model_named(std::string_view name);  ///< throws Misuse, naming the allowed names
/// Throws Misuse where `model` cannot take images of `side` pixels each way (0: text), `resolution` being the option.
void require_side(const Model& model, int side, int resolution);

}  // namespace syncopate::train
