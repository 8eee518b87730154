// `syncopate server`: executes syncopate-server, a process of the parameter server, from the same folder.
#include "command.hpp"
#include "launch/sibling.hpp"

namespace syncopate::tools::command {

namespace {

void define(CLI::App& app, Session& session) { launch::define_as(launch::kServer, app, session); }

}  // namespace

extern constinit const Command server{
    .name = "server",
    .summary = "A process of the parameter server; `syncopate run --servers` starts them with a job",
    .define = define,
};

}  // namespace syncopate::tools::command
