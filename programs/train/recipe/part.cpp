// Parts of a recipe: the run's options with the values of the recipe.
#include "recipe/part.hpp"

#include <fmt/format.h>

#include <tuple>

namespace syncopate::train {
namespace {

Part part_of(const RecipePart& given, const Options& options) {
  Part part{.epochs = given.epochs, .options = options};
  Options& o = part.options;
  o.batch = given.batch;
  o.sync.coding.codec = given.codec;
  o.sync.exchange = given.exchange;
  o.sync.algorithm = given.algorithm;
  if (!given.feedback.empty()) o.sync.coding.feedback.kind = feedback_named(given.feedback);
  if (given.warmup_density)
    std::tie(o.sync.coding.feedback.warmup_density, o.sync.coding.feedback.warmup_steps) = *given.warmup_density;
  if (given.resolution > 0) o.resolution = static_cast<int>(given.resolution);
  if (!given.learning_rate) return part;
  o.learning_rate = given.learning_rate->first;
  part.rates = RateLine{given.learning_rate->first, given.learning_rate->second, 0, given.epochs};
  return part;
}

std::string text_of(const RateLine& line) {
  return line.from == line.to ? fmt::format("{}", line.from) : fmt::format("{} to {}", line.from, line.to);
}

std::uint64_t steps_of(std::uint64_t samples, std::uint64_t batch) { return (samples + batch - 1) / batch; }

}  // namespace

std::vector<Part> parts_of(const Options& options) {
  std::vector<Part> parts;
  if (!options.recipe) {
    parts.push_back({.options = options});
    if (options.epochs) parts.back().epochs = *options.epochs;
    return parts;
  }
  std::uint64_t first_epoch = 0;
  for (const RecipePart& given : options.recipe->parts) {
    parts.push_back(part_of(given, options));
    Part& part = parts.back();
    part.number = parts.size();
    part.first_epoch = first_epoch;
    if (part.rates) part.rates->first_epoch = first_epoch;
    first_epoch += part.epochs;
  }
  return parts;
}

const Part& part_at(const std::vector<Part>& parts, std::uint64_t epoch) {
  for (const Part& part : parts)
    if (epoch < part.first_epoch + part.epochs) return part;
  return parts.back();
}

std::size_t samples_per_step(const Part& part, int ranks) {
  const Options& o = part.options;
  if (o.global_batch > 0) return o.global_batch;
  return o.batch * (o.recipe ? 1 : o.accumulate) * static_cast<std::size_t>(ranks);
}

std::uint64_t steps_left(const std::vector<Part>& parts, const input::Progress& at, std::size_t samples, int ranks) {
  std::uint64_t steps = 0;
  for (const Part& part : parts) {
    const std::uint64_t end = part.first_epoch + part.epochs, batch = samples_per_step(part, ranks);
    if (end <= at.epoch) continue;
    const std::uint64_t begin = std::max(at.epoch, part.first_epoch);
    steps += (end - begin) * steps_of(samples, batch);
    if (begin == at.epoch) steps -= steps_of(samples, batch) - steps_of(samples - at.sample, batch);
  }
  return steps;
}

std::string text_of(const Part& part) {
  const Options& o = part.options;
  const std::uint64_t first = part.first_epoch + 1, last = part.first_epoch + part.epochs;
  std::string text = first == last ? fmt::format("epoch {}: ", first) : fmt::format("epochs {} to {}: ", first, last);
  if (o.resolution > 0) text += fmt::format("{} pixels, ", o.resolution);
  text += fmt::format("batch {}, ", o.batch);
  if (part.rates) text += "learning rate " + text_of(*part.rates) + ", ";
  text += fmt::format("codec {}, exchange {}", o.sync.coding.codec, o.sync.exchange);
  if (o.sync.coding.feedback.kind != FeedbackKind::automatic)
    text += fmt::format(", feedback {}", name_of(o.sync.coding.feedback.kind));
  if (o.sync.coding.feedback.warmup_steps > 0)
    text += fmt::format(", density from {} in {} steps", o.sync.coding.feedback.warmup_density,
                        o.sync.coding.feedback.warmup_steps);
  return o.sync.algorithm == "auto" ? text : text + fmt::format(", algorithm {}", o.sync.algorithm);
}

nlohmann::ordered_json row_of(const Part& part) {
  const Options& o = part.options;
  nlohmann::ordered_json row{{"part", part.number}, {"first_epoch", part.first_epoch}, {"epochs", part.epochs}};
  if (o.resolution > 0) row["resolution"] = o.resolution;
  row["batch"] = o.batch;
  if (part.rates) row["learning_rate"] = {part.rates->from, part.rates->to};
  row["codec"] = o.sync.coding.codec;
  row["exchange"] = o.sync.exchange;
  row["algorithm"] = o.sync.algorithm;
  if (o.sync.coding.feedback.kind != FeedbackKind::automatic) row["feedback"] = name_of(o.sync.coding.feedback.kind);
  if (o.sync.coding.feedback.warmup_steps > 0)
    row["warmup_density"] = {o.sync.coding.feedback.warmup_density, o.sync.coding.feedback.warmup_steps};
  return row;
}

}  // namespace syncopate::train
