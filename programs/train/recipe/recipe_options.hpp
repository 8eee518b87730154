// The command line with a recipe: a setting of the recipe must not be given as an option too.
#pragma once

#include "options.hpp"

namespace CLI {
class App;
}

namespace syncopate::train {

/// Adds --recipe to a command.
void add_recipe_option(CLI::App& app, Options& options);
/// Reads --recipe, if given, into the options; the recipe's own options then count as given in `app`. Throws Misuse
/// that names both if an option repeats a setting of the recipe, or if an option of the recipe or the order of its
/// parts is not allowed; SystemFailure if the file cannot be read.
void read_recipe_option(CLI::App& app, Options& options);

}  // namespace syncopate::train
