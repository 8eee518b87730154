// `syncopate help COMMAND…`: what `syncopate COMMAND… --help` shows.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "arguments.hpp"
#include "command.hpp"
#include "syncopate/error.hpp"

namespace syncopate::tools::command {

namespace {

/// A command whose help is another program's shows it itself.
[[noreturn]] void ask_it_itself(const Session& session, const std::string& name) {
  execl(session.program.c_str(), session.program.c_str(), name.c_str(), "--help", nullptr);
  throw SystemFailure(fmt::format("cannot start {}: {}", session.program, std::strerror(errno)));
}

int show(const CLI::App& program, const std::vector<std::string>& names, const Session& session) {
  const CLI::App* shown = &program;
  std::string path = program.get_name();
  for (const std::string& name : names) {
    const std::vector<std::string> known = subcommands_of(*shown);
    if (known.empty()) throw Misuse(fmt::format("`{}` has no subcommands; see `syncopate help {}`", path, names[0]));
    if (std::ranges::find(known, name) == known.end()) throw Misuse(unknown_word("command", name, known));
    shown = shown->get_subcommand(name);
    path += " " + name;
  }
  if (shown->get_help_ptr() == nullptr) ask_it_itself(session, shown->get_name());
  // Not help(), which goes on to the subcommand that was entered: this one.
  print_text("{}", shown->get_formatter()->make_help(shown, path, CLI::AppFormatMode::Normal));
  return 0;
}

void define(CLI::App& app, Session& session) {
  const auto names = std::make_shared<std::vector<std::string>>();
  app.add_option("COMMAND", *names, "A command, and its subcommand where it has some: `syncopate help lab up`");
  app.callback([&app, &session, names] {
    session.action = [&app, &session, names] { return show(*app.get_parent(), *names, session); };
  });
}

}  // namespace

extern constinit const Command help;
constinit const Command help{"help", "Show the description and the options of a command", define};

}  // namespace syncopate::tools::command
