// `syncopate plan recipe`: how long a training takes on a cluster, part by part, before anything runs.
#pragma once

#include <string>
#include <vector>

#include "command.hpp"
#include "syncopate/predict.hpp"
#include "syncopate/tooling/recipe.hpp"

namespace syncopate::tools::plan {

/// The profile of a step that takes `compute_s`: all times in proportion.
[[nodiscard]] Profile scaled(Profile profile, double compute_s);

/// Predicted times of a part of a recipe.
struct PartTime {
  std::uint64_t steps = 0;
  double compute_s = 0;                 ///< of one step, with its update
  double step_s = 0;                    ///< with the exchange that the backward pass does not hide
  double serial_s = 0;                  ///< with the whole exchange behind the backward pass
  std::vector<std::string> warnings{};  ///< unknown times of coding, an assumed density
};
/// Throws Misuse for a part without samples_per_second, and as predict_policies does.
[[nodiscard]] PartTime time_of(const RecipePart& part, std::uint64_t samples, const Profile& profile,
                               const Cluster& cluster);

void add_recipe(CLI::App& app, Session& session);

}  // namespace syncopate::tools::plan
