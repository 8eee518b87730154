// Options that state what is trained.
#pragma once

#include "options.hpp"

namespace CLI {
class App;
}

namespace syncopate::train {

/// Adds --model, --data and the sizes of models to a command.
void add_model_options(CLI::App& app, Options& options);

}  // namespace syncopate::train
