// The command line: finds the command, runs it, and turns what it throws into exit codes and error rows.
#include <fmt/format.h>
#include <unistd.h>

#include <climits>
#include <optional>
#include <sstream>

#include "arguments.hpp"
#include "command.hpp"
#include "launch/process/signals.hpp"
#include "syncopate/error.hpp"
#include "syncopate/version.hpp"

namespace syncopate::tools {
namespace {

constexpr int kMisuse = 2;

std::string own_path() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : "syncopate";
}

nlohmann::json error_row(const std::string& message, ErrorKind kind, const Where& where) {
  nlohmann::json row{{"error", message}, {"kind", name_of(kind)}};
  if (where.rank >= 0) row["rank"] = where.rank;
  if (where.peer >= 0) row["peer"] = where.peer;
  if (!where.operation.empty()) row["operation"] = where.operation;
  if (!where.tensor.empty()) row["tensor"] = where.tensor;
  return row;
}

int complain(const Session& session, const std::string& message, ErrorKind kind, const Where& where) {
  print_error("syncopate: {}\n", message);
  if (session.json) print_row(error_row(message, kind, where));
  return exit_code_of(kind);
}

/// Every error that can leave a command ends here; nothing below main() prints or exits.
int guarded(const Session& session, const std::function<int()>& action) {
  try {
    return action();
  } catch (const Error& error) {
    return complain(session, error.what(), error.kind(), error.where());
  } catch (const std::exception& error) {
    return complain(session, error.what(), ErrorKind::system_failure, {});
  }
}

void add_common_options(CLI::App& app, Session& session) {
  app.add_flag("--json", session.json, "One JSON object a line on stdout; logs on stderr");
  app.add_option_function<std::string>(
         "--log-level",
         [&session](const std::string& name) {
           session.log.level = log_level_named(name);
           session.log_level = name;
         },
         "error, warning, info, debug or off (also: SYNCOPATE_LOG)")
      ->type_name("LEVEL");
}

void define(CLI::App& app, Session& session) {
  app.description("Data-parallel training that is fast on ordinary networks.");
  app.set_version_flag("--version", fmt::format("syncopate {}", version()));
  app.require_subcommand(0, 1);
  add_common_options(app, session);
  for (const Command* command : commands()) {
    CLI::App* child = app.add_subcommand(std::string(command->name), std::string(command->summary));
    add_common_options(*child, session);
    command->define(*child, session);
  }
  app.footer("`syncopate help COMMAND` explains a command. Exit codes: 0 success, 1 failure, 2 misuse.");
}

/// The words for CLI11, which takes them from the back; the first "--" becomes kDivider.
std::vector<std::string> words_of(int count, char** values, bool& wants_json) {
  std::vector<std::string> words;
  bool divided = false;
  for (int i = 1; i < count; ++i) {
    std::string word = values[i];
    const bool divider = !divided && word == "--";
    if (!divided && word == "--json") wants_json = true;
    divided = divided || divider;
    words.push_back(divider ? kDivider : std::move(word));
  }
  std::reverse(words.begin(), words.end());
  return words;
}

int run_command_line(int count, char** values) {
  hold_standard_descriptors();
  std::optional<launch::process::HeldSignals> held(std::in_place);
  Session session;
  session.program = own_path();
  bool wants_json = false;  // --json, also where parsing stops before it is reached
  const std::vector<std::string> words = words_of(count, values, wants_json);
  CLI::App app{"", "syncopate"};
  const int parsed = guarded(session, [&] {
    session.log = with_environment_level({});  // reads, and so checks, all variables: before a child inherits them
    define(app, session);
    try {
      app.parse(std::vector<std::string>(words));
    } catch (const CLI::ParseError& stop) {
      if (stop.get_exit_code() == 0) {  // --help, --version
        std::ostringstream text;
        app.exit(stop, text);
        write_output(text.str());
        return -1;
      }
      session.json = wants_json;
      throw Misuse(fmt::format("{} (see `syncopate help`, `syncopate help COMMAND`)", refusal_of(app, stop)));
    }
    return 0;
  });
  if (parsed < 0) return guarded(session, [] { return finish_output(), 0; });
  if (parsed != 0) return parsed;
  if (!session.action) {
    print_error("{}", app.help());
    return kMisuse;
  }
  if (!session.holds_signals) held.reset();
  return guarded(session, [&session] {
    const int code = session.action();
    if (code == 0) finish_output();
    return code;
  });
}

}  // namespace
}  // namespace syncopate::tools

int main(int count, char** values) { return syncopate::tools::run_command_line(count, values); }
