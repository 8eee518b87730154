// The parts of a training: consecutive epochs, each part with its own options. Without a recipe there is one part.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "options.hpp"
#include "syncopate/error.hpp"
#include "syncopate/pipeline.hpp"
#include "update/rate.hpp"

namespace syncopate::train {

struct Part {
  std::size_t number = 1;  ///< counted from 1
  std::uint64_t first_epoch = 0, epochs = UINT64_MAX;
  Options options;                ///< the run's, with the recipe's values
  std::optional<RateLine> rates;  ///< replaces the optimizer's schedule
};

/// Returns at least one part. `options` come from parse_options.
[[nodiscard]] std::vector<Part> parts_of(const Options& options);
/// The part of an epoch; after the last epoch the last part.
[[nodiscard]] const Part& part_at(const std::vector<Part>& parts, std::uint64_t epoch);

/// Runs `work`; a Misuse of it then names the part and its recipe.
template <class Work>
void in_part(const Part& part, const Work& work) try {
  work();
} catch (const Misuse& misuse) {
  if (!part.options.recipe) throw;
  throw Misuse(fmt::format("{}, part {}: {}", part.options.recipe_file, part.number, misuse.what()), misuse.where());
}

/// Samples of a step over all ranks. A recipe's batch is that of a rank in a step, whatever the number of
/// micro-batches.
[[nodiscard]] std::size_t samples_per_step(const Part& part, int ranks);
/// Steps from a position to the end of the last part.
[[nodiscard]] std::uint64_t steps_left(const std::vector<Part>& parts, const input::Progress& at, std::size_t samples,
                                       int ranks);

/// "epochs 3 to 4: 48 pixels, batch 8, ...": all values of the recipe.
[[nodiscard]] std::string text_of(const Part& part);
[[nodiscard]] nlohmann::ordered_json row_of(const Part& part);

}  // namespace syncopate::train
