// `syncopate train`: executes syncopate-train, the training program on libtorch, from the same folder.
#include "command.hpp"
#include "launch/sibling.hpp"

namespace syncopate::tools::command {

namespace {

void define(CLI::App& app, Session& session) { launch::define_as(launch::kTrainer, app, session); }

}  // namespace

extern constinit const Command train{
    .name = "train",
    .summary = "Data-parallel training on libtorch; inside `syncopate run` it uses all ranks",
    .define = define,
};

}  // namespace syncopate::tools::command
