// JobFile: one file with the options of all programs of a job, in a section for each.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate::tools {

/// A line "key = value" of a section.
struct JobSetting {
  std::string section, key;
  std::vector<std::string> values;  ///< one, or those of a list
  int line = 0;
};

/// The settings of a text in a subset of TOML: sections, and values in one line, which are bare words, texts in double
/// quotes, or lists of both. Throws Misuse that names `file` and the line: for another syntax, a section that is not
/// one of kJobSections, a setting before the first section, and a key that a section has twice.
[[nodiscard]] std::vector<JobSetting> parse_job(std::string_view text, const std::string& file);

inline constexpr std::string_view kJobSections[] = {"run", "server", "train"};

/// Adds the option --config FILE, which sets the options of `app` that neither the command line nor their environment
/// variable sets: a key of section `section` is an option's long name without its dashes. `file` becomes its path and
/// must outlive the parsing. Parsing then throws Misuse too: as parse_job, for an unknown key, and for a value that the
/// option refuses.
void add_job_file(CLI::App& app, const std::string& section, std::string& file);

}  // namespace syncopate::tools
