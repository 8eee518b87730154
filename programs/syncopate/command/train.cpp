// `syncopate train`: executes syncopate-train, the training program on libtorch, from the same folder.
#include "command.hpp"
#include "launch/sibling.hpp"

namespace syncopate::tools::command {

namespace {

void define(CLI::App& app, Session& session) {
  // Every word belongs to syncopate-train, --help and --json among them.
  app.set_help_flag();
  app.remove_option(app.get_option("--json"));
  app.remove_option(app.get_option("--log-level"));
  app.prefix_command();
  app.callback([&app, &session] {
    session.action = [&session, words = program_behind(app)]() -> int {
      launch::become(launch::kTrainer, session, words);
    };
  });
}

}  // namespace

extern constinit const Command train{
    .name = "train",
    .summary = "Data-parallel training on libtorch; inside `syncopate run` it uses all ranks",
    .define = define,
};

}  // namespace syncopate::tools::command
