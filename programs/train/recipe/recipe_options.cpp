// --recipe: the file is read once; each key of it replaces an option.
#include "recipe/recipe_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "arguments.hpp"
#include "require.hpp"
#include "syncopate/tooling/names.hpp"

namespace syncopate::train {
namespace {

bool any(const Recipe& recipe, bool (*says)(const RecipePart&)) { return std::ranges::any_of(recipe.parts, says); }

struct Taken {
  const char* option;
  const char* key;
};

/// The options that this recipe replaces.
std::vector<Taken> taken_by(const Recipe& recipe) {
  std::vector<Taken> taken{{"--epochs", "epochs"}, {"--batch", "batch"},       {"--global-batch", "batch"},
                           {"--codec", "codec"},   {"--exchange", "exchange"}, {"--algorithm", "algorithm"}};
  if (any(recipe, [](const RecipePart& part) { return part.resolution > 0; }))
    taken.push_back({"--resolution", "resolution"});
  if (any(recipe, [](const RecipePart& part) { return part.learning_rate.has_value(); }))
    for (const char* option : {"--lr", "--warmup", "--milestones", "--decay"})
      taken.push_back({option, "learning_rate"});
  if (any(recipe, [](const RecipePart& part) { return !part.feedback.empty(); }))
    taken.push_back({"--feedback", "feedback"});
  if (any(recipe, [](const RecipePart& part) { return part.warmup_density.has_value(); }))
    for (const char* option : {"--warmup-density", "--warmup-steps"}) taken.push_back({option, "warmup_density"});
  return taken;
}

/// The options that a recipe may have for all its parts; a learning rate is meaningful only with them.
constexpr std::string_view kShared[] = {"optimizer", "momentum", "nesterov",    "weight-decay", "beta1",  "beta2",
                                        "epsilon",   "trust",    "share-norms", "clip",         "augment"};

/// Gives the recipe's options to the command line, which checks and converts them as its own.
void give_options(CLI::App& app, const Options& o) {
  for (const auto& [name, value] : o.recipe->options) {
    if (std::ranges::find(kShared, name) == std::ranges::end(kShared))
      throw Misuse(fmt::format("{}, options: {}", o.recipe_file, unknown_name("option of a recipe", name, kShared)));
    CLI::Option& option = *app.get_option("--" + name);
    require(option.count() == 0, "--{} with --recipe {}, whose options set {}; allowed: one of them", name,
            o.recipe_file, name);
    try {
      option.add_result(value);
      option.run_callback();
    } catch (const CLI::ParseError& error) {
      throw Misuse(fmt::format("{}, options: {}", o.recipe_file, tools::refusal_of(app, error)));
    }
  }
}

constexpr std::string_view kServed = "parameter_server";

/// Workers and servers agree on these settings when the workers come.
bool agrees(const RecipePart& part, const RecipePart& first) {
  return part.codec == first.codec && part.feedback == first.feedback && part.warmup_density == first.warmup_density;
}

/// A later part begins with the state that ranks kept in common, or that servers keep.
void require_together(const Options& o) {
  const std::vector<RecipePart>& parts = o.recipe->parts;
  const bool is_served = std::ranges::all_of(parts, [](const RecipePart& part) { return part.exchange == kServed; });
  for (std::size_t i = 0; i < parts.size() && parts.size() > 1; ++i) {
    require(parts[i].exchange != "none" && (is_served || parts[i].exchange != kServed),
            "{}, part {}: exchange {} in a recipe of {} parts: parts pass weights and the optimizer's state on, which "
            "needs an exchange between ranks; allowed: in a recipe of one part{}",
            o.recipe_file, i + 1, parts[i].exchange, parts.size(),
            parts[i].exchange == kServed ? ", or in all parts" : "");
    require(!is_served || agrees(parts[i], parts[0]),
            "{}, part {}: codec, feedback or warm-up differs from that of part 1: servers keep those with which the "
            "workers came; allowed: the same in all parts with exchange {}",
            o.recipe_file, i + 1, kServed);
  }
}

}  // namespace

void add_recipe_option(CLI::App& app, Options& o) {
  app.add_option("--recipe", o.recipe_file,
                 "JSON file of parts (epochs), each with its own resolution, batch, learning rate, codec and exchange "
                 "(docs/recipes.md); replaces these options");
}

void read_recipe_option(CLI::App& app, Options& o) {
  if (o.recipe_file.empty()) return;
  require(o.profile.empty(), "--recipe with --profile, which measures one kind of step; allowed: without --recipe");
  o.recipe = std::make_shared<const Recipe>(read_recipe(o.recipe_file));
  for (const auto& [option, key] : taken_by(*o.recipe))
    require(app.get_option(option)->count() == 0, "{} with --recipe {}, whose parts set {}; allowed: one of them",
            option, o.recipe_file, key);
  give_options(app, o);
  require_together(o);
  o.epochs = o.recipe->epochs();
  o.sync.exchange = o.recipe->parts.front().exchange;
}

}  // namespace syncopate::train
