// The parts of a training: consecutive epochs with options of their own. Without a recipe there is one.
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
  Options options;                ///< the run's, with what the recipe says
  std::optional<RateLine> rates;  ///< instead of the optimizer's schedule
};

/// Of options that parse_options has checked: one at least.
[[nodiscard]] std::vector<Part> parts_of(const Options& options);
/// The part of an epoch; behind the last epoch the last part.
[[nodiscard]] const Part& part_at(const std::vector<Part>& parts, std::uint64_t epoch);

/// `work`, whose Misuse then names the part and its recipe.
template <class Work>
void in_part(const Part& part, const Work& work) try {
  work();
} catch (const Misuse& misuse) {
  if (!part.options.recipe) throw;
  throw Misuse(fmt::format("{}, part {}: {}", part.options.recipe_file, part.number, misuse.what()), misuse.where());
}

/// Samples of a step of all ranks together. A recipe's batch is a rank's in a step, in however many micro-batches.
[[nodiscard]] std::size_t samples_per_step(const Part& part, int ranks);
/// Steps from a position to the end of the last part.
[[nodiscard]] std::uint64_t steps_left(const std::vector<Part>& parts, const input::Progress& at, std::size_t samples,
                                       int ranks);

/// "epochs 3 to 4: 48 pixels, batch 8, ...": what the recipe says, all of it.
[[nodiscard]] std::string text_of(const Part& part);
[[nodiscard]] nlohmann::ordered_json row_of(const Part& part);

}  // namespace syncopate::train
