// `syncopate train`: hands over to syncopate-train, the training program on libtorch, which stands beside this one.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "command.hpp"
#include "syncopate/error.hpp"

namespace syncopate::tools::command {

namespace {

int hand_over(const Session& session, std::vector<std::string> words) {
  const auto program = std::filesystem::path(session.program).parent_path() / "syncopate-train";
  if (access(program.c_str(), X_OK) != 0)
    throw Misuse(
        fmt::format("syncopate-train was not built: it needs libtorch; run scripts/install, or configure with "
                    "-DSYNCOPATE_LIBTORCH=DIR, "
                    "and build again (expected at {})",
                    program.string()));
  words.insert(words.begin(), program.string());
  if (session.json) words.push_back("--json");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  throw SystemFailure(fmt::format("cannot start {}: {}", program.string(), std::strerror(errno)));
}

void define(CLI::App& app, Session& session) {
  // Every word belongs to syncopate-train, --help and --json among them.
  app.set_help_flag();
  app.remove_option(app.get_option("--json"));
  app.remove_option(app.get_option("--log-level"));
  app.prefix_command();
  app.callback([&app, &session] {
    session.action = [&session, words = program_behind(app)] { return hand_over(session, words); };
  });
}

}  // namespace

extern constinit const Command train{
    .name = "train",
    .summary = "Data-parallel training on libtorch; inside `syncopate run` it uses all ranks",
    .define = define,
};

}  // namespace syncopate::tools::command
