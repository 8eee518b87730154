// JobFile: one file with the options of all programs of a job, in a section for each.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace syncopate::tools {

inline constexpr std::string_view kJobSections[] = {"run", "server", "train"};

/// Adds the option --config FILE, which sets the options of `app` that neither the command line nor their environment
/// variable sets. FILE is TOML: a key of its table `section` is an option's long name without its dashes, a value a
/// string, a number, true, false, or a list of them. `file` becomes its path and must outlive the parsing. Parsing then
/// throws Misuse that names the file and the line: for text that is not TOML, a table that is not one of kJobSections,
/// an unknown key, and a value that the option refuses.
void add_job_file(CLI::App& app, const std::string& section, std::string& file);

}  // namespace syncopate::tools
