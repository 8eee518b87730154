// Arguments: checks of values, and the refusal of words that are no option and no subcommand.
#include "arguments.hpp"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "syncopate/tooling/names.hpp"

namespace syncopate::tools {

namespace {

/// The subcommands that were entered, outermost first.
std::vector<const CLI::App*> entered(const CLI::App& app) {
  std::vector<const CLI::App*> path{&app};
  while (!path.back()->get_subcommands().empty()) path.push_back(path.back()->get_subcommands().front());
  return path;
}

std::string name_of(const std::vector<const CLI::App*>& path) {
  std::vector<std::string> names;
  for (const CLI::App* app : path) names.push_back(app->get_name());
  return fmt::format("`{}`", fmt::join(names, " "));
}

std::vector<std::string> options_of(const std::vector<const CLI::App*>& path) {
  std::vector<std::string> names;
  for (const CLI::Option* option : path.back()->get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// What is wrong with the first word that nothing took; empty where all were taken.
std::string refusal_of_rest(const CLI::App& app) {
  const std::vector<const CLI::App*> path = entered(app);
  const std::vector<std::string> subcommands = subcommands_of(*path.back());
  for (const std::string& word : app.remaining(true)) {
    if (word.starts_with("--"))
      return unknown_word("option of " + name_of(path), word.substr(0, word.find('=')), options_of(path));
    if (word.starts_with('-')) return fmt::format("option of {} '{}' is unknown", name_of(path), word);
    if (subcommands.empty()) return fmt::format("{} takes no further word: '{}'", name_of(path), word);
    return unknown_word("subcommand of " + name_of(path), word, subcommands);
  }
  return {};
}

}  // namespace

CLI::Validator detail::check(std::string allowed, std::function<bool(const std::string&)> accepts) {
  return {[allowed, accepts = std::move(accepts)](std::string& text) {
            return accepts(text) ? std::string() : fmt::format("'{}' is not allowed; allowed: {}", text, allowed);
          },
          allowed};
}

CLI::Validator above_zero() {
  return detail::check("above 0", [](const std::string& text) {
    double value = 0;
    return CLI::detail::lexical_cast(text, value) && std::isfinite(value) && value > 0;
  });
}

CLI::Validator at_least(int least) {
  return detail::check(fmt::format("{} and more", least), [least](const std::string& text) {
    int value = 0;
    return CLI::detail::lexical_cast(text, value) && value >= least;
  });
}

CLI::Validator input_file() {
  return {[](std::string& file) {
            return file == "-" || access(file.c_str(), R_OK) == 0
                       ? std::string()
                       : fmt::format("cannot read {}: {}; allowed: a file that exists", file, std::strerror(errno));
          },
          ""};
}

CLI::Validator one_of(std::string what, std::vector<std::string_view> names) {
  const std::string allowed = fmt::format("{}", fmt::join(names, ", "));
  return {[what = std::move(what), names = std::move(names)](std::string& text) {
            return std::ranges::find(names, text) != names.end() ? std::string() : unknown_name(what, text, names);
          },
          allowed};
}

std::string unknown_word(const std::string& what, const std::string& word, const std::vector<std::string>& allowed) {
  return unknown_name(what, word, std::vector<std::string_view>(allowed.begin(), allowed.end()));
}

std::vector<std::string> subcommands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* child : app.get_subcommands([](const CLI::App* any) { return !any->get_group().empty(); }))
    names.push_back(child->get_name());
  return names;
}

std::string refusal_of(const CLI::App& app, const CLI::ParseError& error) {
  const bool is_extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  const bool is_missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (!is_extra && !is_missing) return error.what();
  const std::string refusal = refusal_of_rest(app);
  if (!refusal.empty()) return refusal;
  const std::vector<const CLI::App*> path = entered(app);
  if (std::string_view(error.what()) != "A subcommand is required") return error.what();
  return fmt::format("{} needs a subcommand; allowed: {}", name_of(path),
                     fmt::join(subcommands_of(*path.back()), ", "));
}

}  // namespace syncopate::tools
