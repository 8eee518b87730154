// Recipes: resolution, batch, learning rate, codec and exchange of a training by epoch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace syncopate {

/// Consecutive epochs with equal settings.
struct RecipePart {
  std::uint64_t epochs = 1;
  std::uint64_t resolution = 0;  ///< pixels of an image each way; 0: the data's own
  std::uint64_t batch = 1;       ///< samples per rank and step
  /// Rates of the part's first step and after its last step, linear between them; empty: the optimizer's.
  std::optional<std::pair<double, double>> learning_rate;
  std::string codec = "none", exchange = "allreduce", algorithm = "auto";
  std::string feedback;  ///< FeedbackOptions::kind; empty: the run's
  /// The codec's density falls from `first` to its own in the training's first `second` steps; empty: the run's.
  std::optional<std::pair<double, std::uint64_t>> warmup_density;

  // For predictions, measured on a rank that trains alone.
  double samples_per_second = 0;  ///< 0: unknown
  double update_s = 0;            ///< optimizer's time per step, not included in samples_per_second
};

/// A training as a list of parts.
struct Recipe {
  std::string about;          ///< its source and its subject
  std::uint64_t samples = 0;  ///< per epoch; 0: all of the data
  /// Options of `syncopate train` for all parts: each one's name without dashes, and its value; "true" gives a switch.
  std::vector<std::pair<std::string, std::string>> options;
  std::vector<RecipePart> parts;

  [[nodiscard]] std::uint64_t epochs() const noexcept;
  /// The part that contains an epoch, counted from 0; null after the last.
  [[nodiscard]] const RecipePart* part_of(std::uint64_t epoch) const noexcept;
};

/// Parses JSON text (format: docs/recipes.md). Throws Misuse that names `file`, the key and the allowed values.
[[nodiscard]] Recipe parse_recipe(std::string_view json, const std::string& file);
/// Reads a file; throws SystemFailure if it cannot be read.
[[nodiscard]] Recipe read_recipe(const std::string& file);

}  // namespace syncopate
