// Recipes: which epochs of a training have which resolution, batch, learning rate, codec and exchange.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace syncopate {

/// Consecutive epochs that are trained alike.
struct RecipePart {
  std::uint64_t epochs = 1;
  std::uint64_t resolution = 0;  ///< pixels of an image each way; 0: as the data has them
  std::uint64_t batch = 1;       ///< samples of a rank and step
  /// In the part's first step and behind its last, with a straight line between; empty: the optimizer's.
  std::optional<std::pair<double, double>> learning_rate;
  std::string codec = "none", exchange = "allreduce", algorithm = "auto";
  std::string feedback;  ///< FeedbackOptions::kind; empty: the run's
  /// The codec's density falls from this to its own in the training's first `second` steps; empty: the run's.
  std::optional<std::pair<double, std::uint64_t>> warmup_density;

  // Measured on a rank that trains alone, for predictions.
  double samples_per_second = 0;  ///< 0: unknown
  double update_s = 0;            ///< of a step: the optimizer's, beside samples_per_second
};

/// A training as a list of parts.
struct Recipe {
  std::string about;          ///< whose it is, and of what
  std::uint64_t samples = 0;  ///< of an epoch; 0: those of the data
  std::vector<RecipePart> parts;

  [[nodiscard]] std::uint64_t epochs() const noexcept;
  /// The part of an epoch, counted from 0; null behind the last.
  [[nodiscard]] const RecipePart* part_of(std::uint64_t epoch) const noexcept;
};

/// Parses JSON text (format: docs/recipes.md). Throws Misuse that names `file`, the key and what is allowed.
[[nodiscard]] Recipe parse_recipe(std::string_view json, const std::string& file);
/// Reads a file; throws SystemFailure if it cannot be read.
[[nodiscard]] Recipe read_recipe(const std::string& file);

}  // namespace syncopate
