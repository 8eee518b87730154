// JobFile: parsing, and options that get their values from it.
#include "job_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "arguments.hpp"
#include "syncopate/error.hpp"

namespace syncopate::tools {

namespace {

constexpr std::string_view kBlank = " \t\r";

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  return text.substr(0, text.find_last_not_of(kBlank) + 1);
}

/// The rest of a line, read from the front.
class Line final {
 public:
  Line(std::string_view rest, std::string where) : rest_(rest), where_(std::move(where)) {}

  [[noreturn]] void refuse(const std::string& why) const { throw Misuse(fmt::format("{}: {}", where_, why)); }

  [[nodiscard]] bool takes(char wanted) {
    skip();
    if (!rest_.starts_with(wanted)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string value(std::string_view ends) {
    if (takes('"')) {
      const std::size_t end = rest_.find('"');
      if (end == rest_.npos) refuse("a text has no closing double quote");
      return take(end, 1);
    }
    const std::string word(trimmed(take(std::min(rest_.find_first_of(ends), rest_.size()), 0)));
    if (word.empty()) refuse("a value is missing; allowed: KEY = VALUE, or KEY = [VALUE, VALUE]");
    return word;
  }
  std::vector<std::string> values() {
    if (!takes('[')) return {value("#")};
    std::vector<std::string> all;
    do all.push_back(value(",]#"));
    while (takes(','));
    if (!takes(']')) refuse("a list does not end in this line; allowed: KEY = [VALUE, VALUE]");
    return all;
  }
  void end() {
    skip();
    if (!rest_.empty() && rest_.front() != '#')
      refuse(fmt::format("'{}' follows the value; allowed: a comment", rest_));
  }

 private:
  void skip() { rest_.remove_prefix(std::min(rest_.find_first_not_of(kBlank), rest_.size())); }
  std::string take(std::size_t count, std::size_t more) {
    std::string taken(rest_.substr(0, count));
    rest_.remove_prefix(count + more);
    return taken;
  }

  std::string_view rest_;
  const std::string where_;
};

std::string place_in(const std::string& file, int line) { return fmt::format("{}:{}", file, line); }

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf()))
    throw Misuse(fmt::format("--config: cannot read {}: {}; allowed: a file that exists and is not empty", file,
                             std::strerror(errno)));
  return text.str();
}

/// Help, version and another file are excluded.
bool is_setting(const CLI::App& app, const CLI::Option& option) {
  return !option.get_lnames().empty() && !option.check_lname("config") && &option != app.get_help_ptr() &&
         &option != app.get_version_ptr();
}

CLI::Option& option_of(CLI::App& app, const JobSetting& setting, const std::string& where) {
  std::vector<std::string> known;
  for (CLI::Option* option : app.get_options({})) {
    if (!is_setting(app, *option)) continue;
    if (option->check_lname(setting.key)) return *option;
    known.push_back(option->get_lnames().front());
  }
  throw Misuse(
      fmt::format("{}: {}", where, unknown_word(fmt::format("key of [{}]", setting.section), setting.key, known)));
}

void apply(const JobSetting& setting, CLI::Option& option, const std::string& where) try {
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

std::vector<JobSetting> parse_job(std::string_view text, const std::string& file) {
  std::vector<JobSetting> settings;
  std::istringstream lines{std::string(text)};
  std::string section, content;
  for (int number = 1; std::getline(lines, content); ++number) {
    const std::string_view whole = trimmed(content);
    if (whole.empty() || whole.front() == '#') continue;
    Line line(whole, place_in(file, number));
    if (line.takes('[')) {
      section = line.value("]#");
      if (!line.takes(']')) line.refuse("a section's name does not end; allowed: [NAME]");
      if (std::ranges::find(kJobSections, section) == std::end(kJobSections))
        line.refuse(unknown_word("section", section, {std::begin(kJobSections), std::end(kJobSections)}));
      line.end();
      continue;
    }
    JobSetting setting{.section = section, .key = line.value("=#"), .values = {}, .line = number};
    if (!line.takes('=')) line.refuse(fmt::format("'{}' has no value; allowed: KEY = VALUE", setting.key));
    if (section.empty()) line.refuse(fmt::format("'{}' is before the first section", setting.key));
    setting.values = line.values();
    line.end();
    for (const JobSetting& other : settings)
      if (other.section == section && other.key == setting.key)
        line.refuse(
            fmt::format("'{}' of [{}] is given in line {} too; give it once", setting.key, section, other.line));
    settings.push_back(std::move(setting));
  }
  return settings;
}

void add_job_file(CLI::App& app, const std::string& section, std::string& file) {
  app.add_option_function<std::string>(
         "--config",
         [&app, &file, section](const std::string& given) {
           file = given;
           for (const JobSetting& setting : parse_job(text_of(given), given)) {
             if (setting.section != section) continue;
             const std::string where = place_in(given, setting.line);
             apply(setting, option_of(app, setting, where), where);
           }
         },
         fmt::format("A job's file: its section [{}] sets options that are not given here", section))
      ->type_name("FILE");
}

}  // namespace syncopate::tools
