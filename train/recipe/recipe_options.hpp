// The command line beside a recipe: what the recipe says is not said twice.
#pragma once

#include "options.hpp"

namespace CLI {
class App;
}

namespace syncopate::train {

/// Adds --recipe to a command.
void add_recipe_option(CLI::App& app, Options& options);
/// Reads --recipe, if it was given, into the options. Throws Misuse that names both where an option says what the
/// recipe says, or where its parts cannot follow one another; SystemFailure (the file cannot be read).
void read_recipe_option(const CLI::App& app, Options& options);

}  // namespace syncopate::train
