// Profiles: a model's layers and times, from JSON, or from an architecture and a throughput.
#include <fmt/format.h>

#include "base/json.hpp"
#include "base/require.hpp"
#include "schedule/architecture.hpp"
#include "syncopate/simulate.hpp"

namespace syncopate {

Profile parse_profile(std::string_view json, const std::string& file) {
  const nlohmann::json document = base::json_of(json, file);
  const base::JsonPlace root(document, file);
  Profile profile;
  profile.model = root.at("model").text();
  profile.forward_s = root.at("forward_s").amount();
  const std::uint64_t width = root.has("bytes_per_element") ? root.at("bytes_per_element").count(1) : 4;
  const base::JsonPlace layers = root.at("layers");
  if (layers.size() == 0) layers.refuse("has no layers; a profile has one at least");
  double backward_s = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const base::JsonPlace layer = layers.at(i);
    profile.layers.push_back({.name = layer.at("name").text(),
                              .bytes = width * layer.at("elements").count(1),
                              .backward_s = layer.at("backward_s").amount()});
    backward_s += profile.layers.back().backward_s;
  }
  if (backward_s == 0) layers.refuse("every backward_s is 0; a profile needs measured times");
  return profile;
}

Profile read_profile(const std::string& file) { return parse_profile(base::text_of_file(file), file); }

Profile derive_profile(const std::string& architecture, double samples_per_s, int batch) {
  constexpr double kForwardShare = 1.0 / 3;  // measured ones are 0.29 to 0.33: backward takes two products where
                                             // forward takes one
  base::require(samples_per_s > 0 && batch > 0, "{} samples per second in batches of {}; allowed: above 0",
                samples_per_s, batch);
  const schedule::Architecture& entry = schedule::architecture_named(architecture);
  const std::vector<schedule::Tensor> layers = layers_of(entry.tensors());
  double flops = 0;
  for (const schedule::Tensor& layer : layers) flops += layer.flops;
  const double step_s = batch / samples_per_s;
  Profile profile{
      .model = fmt::format("{}, {} samples a step, derived from {:g} samples/s", architecture, batch, samples_per_s),
      .forward_s = kForwardShare * step_s,
      .layers = {}};
  for (const schedule::Tensor& layer : layers)
    profile.layers.push_back({.name = layer.name,
                              .bytes = 4 * layer.elements,
                              .backward_s = (1 - kForwardShare) * step_s * layer.flops / flops});
  return profile;
}

}  // namespace syncopate
