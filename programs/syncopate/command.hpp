// Command: one entry of the command line. A shelf file command/<name>.cpp defines one.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/log.hpp"
#include "syncopate/tooling/standard_streams.hpp"

namespace syncopate::tools {

/// State that the command line shares with the selected command.
struct Session {
  bool json = false;            ///< one JSON object a line on stdout, logs on stderr
  Log log;                      ///< --log-level, SYNCOPATE_LOG
  std::string log_level;        ///< --log-level as given; empty: not given
  std::string program;          ///< absolute path of this executable
  bool holds_signals = false;   ///< the command takes SIGINT, SIGTERM and SIGHUP itself; before that they stay pending
  std::function<int()> action;  ///< set by the chosen command; its result is the exit code
};

/// fmt::print throws where a stream is broken; these two do not. main() checks standard output when a command has
/// ended.
template <class... Values>
void print_text(fmt::format_string<Values...> format, Values&&... values) {
  write_output(fmt::format(format, std::forward<Values>(values)...));
}
template <class... Values>
void print_error(fmt::format_string<Values...> format, Values&&... values) {
  write_error(fmt::format(format, std::forward<Values>(values)...));
}

/// Writes one JSON object as one line on stdout, in a single write.
void print_row(const nlohmann::json& row);

/// The words behind the options of a command declared with `app.prefix_command()`: everything from the first word that
/// is not an option of ours, or from after the first "--".
[[nodiscard]] std::vector<std::string> words_behind(const CLI::App& app);
/// The user's own program, which these words are. A word that begins with '-' before the program's name or "--" is an
/// option that the command does not have: throws CLI::ExtrasError.
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
