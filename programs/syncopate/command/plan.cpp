// `syncopate plan`: what a plan costs before anything runs; a profile compares policies, `collective` shows one plan.
#include "command.hpp"
#include "plan/collective.hpp"
#include "plan/policies.hpp"
#include "plan/recipe.hpp"

namespace syncopate::tools::command {
namespace {

void define(CLI::App& app, Session& session) {
  tools::plan::add_policies(app, session);
  app.require_subcommand(0, 1);
  tools::plan::add_collective(app, session);
  tools::plan::add_recipe(app, session);
}

}  // namespace

extern constinit const Command plan;
constinit const Command plan{"plan", "Predict the cost of a plan before anything runs", define};

}  // namespace syncopate::tools::command
