// The shelf of models: what an entry of train/model says about itself.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace syncopate::train {

struct Network;
class Builder;

enum class DataKind : std::uint8_t { images, text };

/// Sizes of the transformer; the other models have none to choose.
struct ModelOptions {
  int layers = 4;
  int width = 256;
  int heads = 4;
  int context = 128;
};

struct Model {
  std::string_view name;
  std::string_view summary;
  DataKind input = DataKind::images;
  double learning_rate = 0.1;  ///< default of --lr: right for a global batch of about 128
  std::uint64_t warmup = 0;    ///< default of --warmup
  double clip = 0;             ///< default of --clip
  Network (*build)(Builder& builder, const ModelOptions& options) = nullptr;
};

[[nodiscard]] std::span<const Model* const> models();
[[nodiscard]] const Model& model_named(std::string_view name);  ///< throws Misuse, naming the allowed names

}  // namespace syncopate::train
