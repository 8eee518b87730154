// Profiles: a model's layers and times, parsed from JSON or derived from operations and a throughput.
#include <fmt/format.h>

#include <cmath>

#include "base/json.hpp"
#include "base/require.hpp"
#include "network/architecture.hpp"
#include "syncopate/predict.hpp"

namespace syncopate {

namespace {
constexpr std::uint64_t kMostBytes = 9'000'000'000'000'000;  // a double is exact up to here
}

Profile parse_profile(std::string_view json, const std::string& file) {
  const nlohmann::json document = base::json_of(json, file);
  const base::JsonPlace root(document, file);
  if (!root.has("model") && (root.has("links") || root.has("costs")))
    root.refuse("this is a cluster file (`syncopate fit`); allowed: a profile (`syncopate profile`)");
  Profile profile;
  profile.model = root.at("model").text();
  profile.forward_s = root.at("forward_s").amount();
  const std::uint64_t width = root.has("bytes_per_element") ? root.at("bytes_per_element").count(1) : 4;
  const base::JsonPlace layers = root.at("layers");
  if (layers.size() == 0) layers.refuse("is empty; allowed: at least one layer");
  double backward_s = 0;
  std::uint64_t left = kMostBytes;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const base::JsonPlace layer = layers.at(i);
    const std::uint64_t elements = layer.at("elements").count(1);
    const std::uint64_t own_width = layer.has("bytes_per_element") ? layer.at("bytes_per_element").count(1) : width;
    if (elements > left / own_width)
      layer.refuse(fmt::format("all layers together have more than {} bytes", kMostBytes));
    left -= own_width * elements;
    profile.layers.push_back({.name = layer.at("name").text(),
                              .bytes = own_width * elements,
                              .backward_s = layer.at("backward_s").amount(),
                              .rows = layer.has("rows") ? layer.at("rows").count(1) : 0});
    backward_s += profile.layers.back().backward_s;
  }
  if (backward_s == 0) layers.refuse("every backward_s is 0; a profile needs measured times");
  return profile;
}

std::size_t rows_of(const ProfileLayer& layer) {
  const std::size_t elements = layer.bytes / sizeof(float);
  if (layer.rows > 0 && elements % layer.rows == 0) return layer.rows;
  auto rows = static_cast<std::size_t>(std::sqrt(static_cast<double>(elements)));
  while (rows > 1 && elements % rows != 0) --rows;
  return rows > 1 ? rows : elements;
}

Profile read_profile(const std::string& file) { return parse_profile(base::text_of_file(file), file); }

std::vector<LayerWork> layers_of_architecture(const std::string& architecture) {
  std::vector<LayerWork> layers;
  for (network::Tensor& layer : layers_of(network::architecture_named(architecture).tensors()))
    layers.push_back({std::move(layer.name), layer.elements, layer.flops});
  return layers;
}

Profile derive_profile(const std::string& model, const std::vector<LayerWork>& layers, double flops_per_s, int batch) {
  base::require(flops_per_s > 0 && batch > 0, "{} FLOP/s and batches of {}; allowed: above 0", flops_per_s, batch);
  Profile profile{.model = fmt::format("{}, {} samples a step, at {} GFLOP/s", model, batch, flops_per_s / 1e9),
                  .forward_s = 0,
                  .layers = {}};
  for (const LayerWork& layer : layers) {
    const double forward_s = layer.flops * batch / flops_per_s;
    profile.forward_s += forward_s;
    profile.layers.push_back({.name = layer.name, .bytes = 4 * layer.elements, .backward_s = 2 * forward_s});
  }
  return profile;
}

}  // namespace syncopate
