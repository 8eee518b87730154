// Recipes before they run: every part's step as the fusion policy would have it, times its steps.
#include "plan/recipe.hpp"

#include <fmt/format.h>

#include <set>

#include "arguments.hpp"
#include "syncopate/error.hpp"
#include "syncopate/foresight.hpp"
#include "syncopate/tooling/json.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::plan {
namespace {

struct RecipeArguments {
  std::string recipe, profile, cluster;
  int ranks = 0;
};

struct PredictedRecipe {
  Recipe recipe;
  Cluster cluster;
  std::vector<PartTime> parts;
  double seconds = 0, serial_seconds = 0;
  std::set<std::string> warnings;  ///< each once, of all parts
};

PredictedRecipe answer_of(const RecipeArguments& options) {
  PredictedRecipe answer{read_recipe(options.recipe), read_cluster(options.cluster), {}};
  if (answer.recipe.samples == 0)
    throw Misuse(fmt::format("{}: samples is missing; plan recipe needs those of an epoch", options.recipe));
  if (options.ranks != 0 && options.ranks != answer.cluster.ranks) {
    answer.cluster.ranks = options.ranks;
    answer.cluster.costs.clear();  // they were measured on another number of ranks
  }
  const Profile profile = read_profile(options.profile);
  for (const RecipePart& part : answer.recipe.parts) {
    answer.parts.push_back(time_of(part, answer.recipe.samples, profile, answer.cluster));
    const PartTime& time = answer.parts.back();
    answer.warnings.insert(time.warnings.begin(), time.warnings.end());
    answer.seconds += static_cast<double>(time.steps) * time.step_s;
    answer.serial_seconds += static_cast<double>(time.steps) * time.serial_s;
  }
  return answer;
}

nlohmann::json row_of(const RecipePart& part, const PartTime& time) {
  return {{"epochs", part.epochs},
          {"resolution", part.resolution},
          {"batch", part.batch},
          {"codec", part.codec},
          {"exchange", part.exchange},
          {"algorithm", part.algorithm},
          {"steps", time.steps},
          {"compute_s", time.compute_s},
          {"step_s", time.step_s},
          {"serial_s", time.serial_s},
          {"share_of_ceiling", time.compute_s / time.step_s}};
}

void print_table(const PredictedRecipe& answer) {
  print_text("{}\n{} ranks\n\n{:>7}{:>8}{:>7}  {:<28}{:>8}{:>12}{:>12}{:>12}{:>16}\n", answer.recipe.about,
             answer.cluster.ranks, "epochs", "pixels", "batch", "codec, exchange", "steps", "computing", "step",
             "of ceiling", "no overlap");
  for (std::size_t i = 0; i < answer.parts.size(); ++i) {
    const RecipePart& part = answer.recipe.parts[i];
    const PartTime& time = answer.parts[i];
    print_text("{:>7}{:>8}{:>7}  {:<28}{:>8}{:>12}{:>12}{:>10.0f} %{:>16}\n", part.epochs, part.resolution, part.batch,
               fmt::format("{}, {}", part.codec, part.exchange), time.steps, format_seconds(time.compute_s),
               format_seconds(time.step_s), 100 * time.compute_s / time.step_s, format_seconds(time.serial_s));
  }
  print_text("\nin all {:.1f} s; {:.1f} s if no exchange overlapped a backward pass\n", answer.seconds,
             answer.serial_seconds);
}

int print(const RecipeArguments& options, const Session& session) {
  const PredictedRecipe answer = answer_of(options);
  for (const std::string& warning : answer.warnings) session.log.write(LogLevel::warning, warning);
  if (!session.json) {
    print_table(answer);
    return 0;
  }
  for (std::size_t i = 0; i < answer.parts.size(); ++i) print_row(row_of(answer.recipe.parts[i], answer.parts[i]));
  print_row({{"epochs", answer.recipe.epochs()},
             {"ranks", answer.cluster.ranks},
             {"seconds", answer.seconds},
             {"serial_seconds", answer.serial_seconds}});
  return 0;
}

}  // namespace

Profile scaled(Profile profile, double compute_s) {
  double whole_s = profile.forward_s;
  for (const ProfileLayer& layer : profile.layers) whole_s += layer.backward_s;
  const double factor = compute_s / whole_s;
  profile.forward_s *= factor;
  for (ProfileLayer& layer : profile.layers) layer.backward_s *= factor;
  return profile;
}

PartTime time_of(const RecipePart& part, std::uint64_t samples, const Profile& profile, const Cluster& cluster) {
  if (part.samples_per_second <= 0)
    throw Misuse(
        fmt::format("the part of {} epochs at resolution {} has no samples_per_second; plan recipe needs what "
                    "one rank reaches alone",
                    part.epochs, part.resolution));
  const std::uint64_t batch = part.batch * static_cast<std::uint64_t>(cluster.ranks);
  PartTime time{.steps = part.epochs * ((samples + batch - 1) / batch),
                .compute_s = static_cast<double>(part.batch) / part.samples_per_second + part.update_s};
  const Profile step = scaled(profile, time.compute_s - part.update_s);
  Cluster here = cluster;
  if (part.algorithm != "auto") here.algorithm = part.algorithm;
  const ExchangeChoice choice{.codec = part.codec, .exchange = part.exchange};
  const PredictOptions options{.policies = {"fusion", "single"}, .law = law_of(choice, step, here, part.algorithm)};
  time.warnings = warnings_about_law(choice, options.law);
  const std::vector<Prediction> predictions = predict_policies(step, here, options);
  time.step_s = predictions.front().iteration_s + part.update_s;
  const PredictedBucket& all = predictions.back().buckets.front();
  time.serial_s = time.compute_s + all.end_s - all.begin_s;
  return time;
}

void add_recipe(CLI::App& app, Session& session) {
  const auto options = std::make_shared<RecipeArguments>();
  CLI::App& command = *app.add_subcommand("recipe", "How long a training by a recipe takes, part by part");
  command.fallthrough();  // --json and --log-level may stand behind it
  command
      .add_option("RECIPE", options->recipe,
                  "Epochs with resolution, batch, codec and exchange (JSON; docs/recipes.md)")
      ->required()
      ->check(input_file());
  command
      .add_option("--profile", options->profile,
                  "The model's layers (JSON; docs/scheduling.md); their times count in proportion, the time of a "
                  "part's step follows from its samples_per_second")
      ->required()
      ->check(input_file());
  command.add_option("--cluster", options->cluster, "The network's numbers (JSON; docs/scheduling.md)")
      ->required()
      ->type_name("FILE")
      ->check(input_file());
  command
      .add_option("--ranks", options->ranks, "Ranks instead of the cluster's; its links, not its measured costs, count")
      ->check(at_least(1));
  command.callback([options, &session] { session.action = [options, &session] { return print(*options, session); }; });
}

}  // namespace syncopate::tools::plan
