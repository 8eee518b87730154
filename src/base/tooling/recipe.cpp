// Parses recipes from JSON.
#include "syncopate/tooling/recipe.hpp"

#include <fmt/format.h>

#include "base/json.hpp"

namespace syncopate {

namespace {

constexpr std::uint64_t kMostEpochs = 1'000'000;
constexpr std::uint64_t kMostBatch = std::uint64_t{1} << 24;
constexpr std::uint64_t kLeastSide = 16, kMostSide = 4096;

std::uint64_t count_within(const base::JsonPlace& place, std::uint64_t least, std::uint64_t most) {
  const std::uint64_t count = place.count(least);
  if (count > most) place.refuse(fmt::format("{}; allowed: {} to {}", count, least, most));
  return count;
}

std::string text_or(const base::JsonPlace& part, const char* key, const std::string& otherwise) {
  return part.has(key) ? part.at(key).text() : otherwise;
}

std::pair<double, double> rates_of(const base::JsonPlace& place) {
  if (place.size() != 2) place.refuse("must be [first rate, final rate]");
  return {place.at(std::size_t{0}).amount(), place.at(std::size_t{1}).amount()};
}

std::pair<double, std::uint64_t> density_of(const base::JsonPlace& place) {
  if (place.size() != 2) place.refuse("must be [first density, number of steps in which it falls]");
  const double density = place.at(std::size_t{0}).amount();
  if (density == 0 || density > 1)
    place.refuse(fmt::format("starts with a density of {}; allowed: above 0, at most 1", density));
  return {density, place.at(std::size_t{1}).count(1)};
}

RecipePart part_of(const base::JsonPlace& place) {
  place.refuse_misspelt({"epochs", "resolution", "batch", "learning_rate", "codec", "exchange", "algorithm", "feedback",
                         "warmup_density", "samples_per_second", "update_s"});
  RecipePart part;
  part.epochs = count_within(place.at("epochs"), 1, kMostEpochs);
  part.batch = count_within(place.at("batch"), 1, kMostBatch);
  if (place.has("resolution")) part.resolution = count_within(place.at("resolution"), kLeastSide, kMostSide);
  if (place.has("learning_rate")) part.learning_rate = rates_of(place.at("learning_rate"));
  part.codec = text_or(place, "codec", part.codec);
  part.exchange = text_or(place, "exchange", part.exchange);
  part.algorithm = text_or(place, "algorithm", part.algorithm);
  part.feedback = text_or(place, "feedback", part.feedback);
  if (place.has("warmup_density")) part.warmup_density = density_of(place.at("warmup_density"));
  part.samples_per_second = place.amount_or("samples_per_second", 0);
  part.update_s = place.amount_or("update_s", 0);
  return part;
}

}  // namespace

std::uint64_t Recipe::epochs() const noexcept {
  std::uint64_t sum = 0;
  for (const RecipePart& part : parts) sum += part.epochs;
  return sum;
}

const RecipePart* Recipe::part_of(std::uint64_t epoch) const noexcept {
  for (const RecipePart& part : parts) {
    if (epoch < part.epochs) return &part;
    epoch -= part.epochs;
  }
  return nullptr;
}

Recipe parse_recipe(std::string_view json, const std::string& file) {
  const nlohmann::json document = base::json_of(json, file);
  const base::JsonPlace root(document, file);
  root.refuse_misspelt({"about", "source", "samples", "options", "parts"});
  Recipe recipe;
  if (root.has("about")) recipe.about = root.at("about").text();
  if (root.has("samples")) recipe.samples = root.at("samples").count(1);
  if (root.has("options"))
    for (const auto& [name, value] : root.at("options").items()) recipe.options.emplace_back(name, value.argument());
  const base::JsonPlace parts = root.at("parts");
  if (parts.size() == 0) parts.refuse("is empty; allowed: at least one part");
  for (std::size_t i = 0; i < parts.size(); ++i) recipe.parts.push_back(part_of(parts.at(i)));
  return recipe;
}

Recipe read_recipe(const std::string& file) { return parse_recipe(base::text_of_file(file), file); }

}  // namespace syncopate
