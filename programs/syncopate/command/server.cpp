// `syncopate server`: executes syncopate-server, a process of the parameter server, from the same folder.
#include "command.hpp"
#include "launch/sibling.hpp"

namespace syncopate::tools::command {

namespace {

void define(CLI::App& app, Session& session) {
  // Every word belongs to syncopate-server, --help and --json among them.
  app.set_help_flag();
  app.remove_option(app.get_option("--json"));
  app.remove_option(app.get_option("--log-level"));
  app.prefix_command();
  app.callback([&app, &session] {
    session.action = [&session, words = program_behind(app)]() -> int {
      launch::become(launch::kServer, session, words);
    };
  });
}

}  // namespace

extern constinit const Command server{
    .name = "server",
    .summary = "A process of the parameter server; `syncopate run --servers` starts them with a job",
    .define = define,
};

}  // namespace syncopate::tools::command
