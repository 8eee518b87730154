// JobFile: options that get their values from a file in TOML.
#include "job_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include "arguments.hpp"
#include "syncopate/error.hpp"

namespace syncopate::tools {

namespace {

/// A key of a section, with one value or those of a list.
struct Setting {
  std::string key;
  std::vector<std::string> values{};
  unsigned line = 0;
};

std::string place_in(const std::string& file, const toml::source_position& position) {
  return fmt::format("{}:{}", file, position.line);
}

[[noreturn]] void refuse(const std::string& file, const toml::node& node, const std::string& why) {
  throw Misuse(fmt::format("{}: {}", place_in(file, node.source().begin), why));
}

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf()))
    throw Misuse(fmt::format("--config: cannot read {}: {}; allowed: a file that exists and is not empty", file,
                             std::strerror(errno)));
  return text.str();
}

toml::table content_of(const std::string& file) try {
  return toml::parse(text_of(file));
} catch (const toml::parse_error& error) {
  throw Misuse(fmt::format("{}: {}; allowed: TOML, in which a text is in quotes", place_in(file, error.source().begin),
                           error.description()));
}

/// An option's value as on a command line. Empty: it has none there.
std::string word_of(const toml::node& value) {
  if (const auto* text = value.as_string()) return text->get();
  if (const auto* number = value.as_integer()) return std::to_string(number->get());
  if (const auto* number = value.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* is_set = value.as_boolean()) return is_set->get() ? "true" : "false";
  return {};
}

std::vector<std::string> words_of(const std::string& file, const std::string& key, const toml::node& value) {
  std::vector<std::string> words;
  if (const auto* list = value.as_array())
    for (const toml::node& one : *list) words.push_back(word_of(one));
  else
    words.push_back(word_of(value));
  if (words.empty() || std::ranges::find(words, "") != words.end())
    refuse(
        file, value,
        fmt::format("'{}' has a value that no option takes; allowed: a text that is not empty, a number, true, false, "
                    "or a list of them",
                    key));
  return words;
}

/// In the order of the lines.
std::vector<Setting> settings_of(const std::string& file, const std::string& section) {
  std::vector<Setting> settings;
  for (const auto& [name, node] : content_of(file)) {
    const std::string own(name.str());
    if (!node.is_table())
      refuse(file, node,
             fmt::format("'{}' is in no section; allowed: below [{}]", own, fmt::join(kJobSections, "], [")));
    if (std::ranges::find(kJobSections, own) == std::end(kJobSections))
      refuse(file, node, unknown_word("section", own, {std::begin(kJobSections), std::end(kJobSections)}));
    if (own != section) continue;
    for (const auto& [key, value] : *node.as_table())
      settings.push_back({std::string(key.str()), words_of(file, std::string(key.str()), value),
                          static_cast<unsigned>(key.source().begin.line)});
  }
  std::ranges::sort(settings, {}, &Setting::line);
  return settings;
}

/// Help, version and another file are excluded.
bool is_setting(const CLI::App& app, const CLI::Option& option) {
  return !option.get_lnames().empty() && !option.check_lname("config") && &option != app.get_help_ptr() &&
         &option != app.get_version_ptr();
}

CLI::Option& option_of(CLI::App& app, const std::string& section, const Setting& setting, const std::string& where) {
  std::vector<std::string> known;
  for (CLI::Option* option : app.get_options({})) {
    if (!is_setting(app, *option)) continue;
    if (option->check_lname(setting.key)) return *option;
    known.push_back(option->get_lnames().front());
  }
  throw Misuse(fmt::format("{}: {}", where, unknown_word(fmt::format("key of [{}]", section), setting.key, known)));
}

void apply(const Setting& setting, CLI::Option& option, const std::string& where) try {
  if (option.count() > 0) return;
  for (const std::string& value : setting.values) option.add_result(value);
  option.run_callback();
} catch (const CLI::ParseError& error) {
  throw Misuse(fmt::format("{}: {}", where, error.what()));
} catch (const Misuse& error) {
  const std::string text = error.what();
  throw Misuse(text.starts_with("--") ? fmt::format("{}: {}", where, text)
                                      : fmt::format("{}: --{}: {}", where, setting.key, text));
}

}  // namespace

void add_job_file(CLI::App& app, const std::string& section, std::string& file) {
  app.add_option_function<std::string>(
         "--config",
         [&app, &file, section](const std::string& given) {
           file = given;
           for (const Setting& setting : settings_of(given, section)) {
             const std::string where = fmt::format("{}:{}", given, setting.line);
             apply(setting, option_of(app, section, setting, where), where);
           }
         },
         fmt::format("A job's file: its section [{}] sets options that are not given here", section))
      ->type_name("FILE");
}

}  // namespace syncopate::tools
