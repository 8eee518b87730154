// Functions that commands share: rows on stdout, and the user's program after their options.
#include "command.hpp"

#include "syncopate/tooling/json.hpp"

namespace syncopate::tools {

void print_row(const nlohmann::json& row) { write_output(text_of_json(row) + "\n"); }

std::vector<std::string> words_behind(const CLI::App& app) {
  std::vector<std::string> words = app.remaining();
  if (!words.empty() && words.front() == kDivider) words.erase(words.begin());
  for (std::string& word : words)
    if (word == kDivider) word = "--";
  return words;
}

std::vector<std::string> program_behind(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining();
  if (!words.empty() && words.front().starts_with('-')) throw CLI::ExtrasError(app.get_name(), words);
  return words_behind(app);
}

}  // namespace syncopate::tools
