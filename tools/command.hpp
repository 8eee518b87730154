// Command: one entry of the command line. A shelf file tools/command/<name>.cpp defines one.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/log.hpp"

namespace syncopate::tools {

/// What the command line shares with the command it chose.
struct Session {
  bool json = false;            ///< one JSON object a line on stdout, logs on stderr
  Log log;                      ///< --log-level, SYNCOPATE_LOG
  std::string log_level;        ///< --log-level as given; empty: not given
  std::string program;          ///< absolute path of this executable
  std::function<int()> action;  ///< set by the chosen command; its result is the exit code
};

/// Writes one JSON object as one line on stdout and flushes, in a single write.
void print_row(const nlohmann::json& row);

/// The user's own program behind the options of a command declared with `app.prefix_command()`: everything from the
/// first word that is no option of ours, or from behind the first "--".
[[nodiscard]] std::vector<std::string> program_behind(const CLI::App& app);
/// How main() marks the user's first "--", so that nothing behind it is taken for an option of ours.
inline constexpr const char* kDivider = "\x1f--";

struct Command {
  std::string_view name;
  std::string_view summary;
  /// Declares options on `app` (already named and described) and, by `app.callback`, sets `session.action`.
  void (*define)(CLI::App& app, Session& session);
};

/// Every command, by name (generated from the folder command/).
[[nodiscard]] std::span<const Command* const> commands();

}  // namespace syncopate::tools
