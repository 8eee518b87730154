// `syncopate info`: the catalogues, as a table for people, rows for programs, or Markdown for documentation.
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "command.hpp"
#include "syncopate/tooling/combinations.hpp"
#include "syncopate/tooling/environment.hpp"
#include "syncopate/tooling/shelves.hpp"
#include "syncopate/version.hpp"

namespace syncopate::tools::command {

namespace {

/// Those of the library, and the commands.
std::vector<ShelfEntry> entries(const std::string& name) {
  std::vector<ShelfEntry> all = shelf_entries();
  for (const Command* command : commands()) all.push_back({"command", command->name, command->summary, ""});
  return entries_named(name, std::move(all));
}

void print_rows(const std::vector<ShelfEntry>& all) {
  for (const ShelfEntry& entry : all)
    print_row({{"shelf", entry.shelf}, {"name", entry.name}, {"summary", entry.summary}, {"source", entry.source}});
}

std::string escaped(std::string_view text) {
  std::string cell;
  for (const char c : text) cell += c == '|' ? std::string("\\|") : std::string(1, c);
  return cell;
}

void print_markdown(const std::vector<ShelfEntry>& all) {
  std::string_view shelf;
  for (const ShelfEntry& entry : all) {
    if (entry.shelf != shelf) {
      print_text("{}## {}\n\n| name | what it is | source |\n|---|---|---|\n", shelf.empty() ? "" : "\n", entry.shelf);
      shelf = entry.shelf;
    }
    print_text("| `{}` | {} | {} |\n", entry.name, escaped(entry.summary), escaped(entry.source));
  }
}

/// "codec `a`, `b` with feedback `c`"
std::string markdown_of(const Exclusion& exclusion) {
  std::string text;
  const std::pair<const char*, const std::vector<std::string>*> kinds[] = {{"codec", &exclusion.codecs},
                                                                           {"feedback", &exclusion.feedbacks},
                                                                           {"policy", &exclusion.policies},
                                                                           {"optimizer", &exclusion.optimizers}};
  for (const auto& [kind, names] : kinds)
    if (!names->empty())
      text += fmt::format("{}{} `{}`", text.empty() ? "" : " with ", kind, fmt::join(*names, "`, `"));
  return text;
}

/// "`parameter_server` under `bsp`"
std::string exchanges_of(const Exclusion& exclusion) {
  std::string text =
      exclusion.exchanges.empty() ? "every" : fmt::format("`{}`", fmt::join(exclusion.exchanges, "`, `"));
  for (std::size_t at = 0; (at = text.find(" under ", at)) != std::string::npos; at += 9)
    text.replace(at, 7, "` under `");
  return text;
}

void print_combinations() {
  print_text(
      "\n## combination\n\n"
      "Every exchange, codec, feedback, policy and optimizer work together, except:\n\n"
      "| exchange | does not work | reason |\n|---|---|---|\n");
  for (const Exclusion& exclusion : exclusions())
    print_text("| {} | {} | {} |\n", exchanges_of(exclusion), markdown_of(exclusion), escaped(exclusion.reason));
}

void print_table(const std::vector<ShelfEntry>& all) {
  std::size_t width = 0;
  for (const ShelfEntry& entry : all) width = std::max(width, entry.name.size());
  std::string_view shelf;
  for (const ShelfEntry& entry : all) {
    if (entry.shelf != shelf) print_text("{}{}\n", shelf.empty() ? "" : "\n", entry.shelf);
    shelf = entry.shelf;
    print_text("  {:<{}}  {}\n", entry.name, width, entry.summary);
    if (!entry.source.empty()) print_text("  {:<{}}  [{}]\n", "", width, entry.source);
  }
}

void print_environment_rows() {
  for (const EnvironmentVariable& variable : environment_variables())
    print_row({{"shelf", "variable"},
               {"name", variable.name},
               {"summary", variable.meaning},
               {"source", ""},
               {"values", variable.values},
               {"default", variable.fallback}});
}

void print_environment_markdown() {
  print_text(
      "# Environment variables\n\n"
      "Options of a program and of the API win over variables. A value that is not allowed ends the program with an "
      "error\nthat names the variable. `syncopate info --environment --markdown` prints this page.\n");
  std::string_view topic;
  for (const EnvironmentVariable& variable : environment_variables()) {
    if (variable.topic != topic)
      print_text("\n## {}\n\n| variable | allowed | default | meaning |\n|---|---|---|---|\n", variable.topic);
    topic = variable.topic;
    print_text("| `{}` | {} | {} | {} |\n", variable.name, escaped(variable.values), escaped(variable.fallback),
               escaped(variable.meaning));
  }
}

void print_environment() {
  for (const EnvironmentVariable& variable : environment_variables())
    print_text("{}\n    {}\n    allowed: {}; default: {}\n", variable.name, variable.meaning, variable.values,
               variable.fallback);
}

int show_environment(bool json, bool wants_markdown) {
  if (json)
    print_environment_rows();
  else if (wants_markdown)
    print_environment_markdown();
  else
    print_environment();
  return 0;
}

void define(CLI::App& app, Session& session) {
  const auto name = std::make_shared<std::string>();
  app.add_option("NAME", *name, "Only what has this name, or stands on the shelf of this name: ring, codec");
  const auto* markdown = app.add_flag("--markdown")->description("Tables for documentation");
  const auto* environment =
      app.add_flag("--environment")->description("Environment variables instead of catalogue entries");
  app.callback([&session, markdown, environment, name] {
    session.action = [&session, name, wants_markdown = markdown->count() > 0,
                      wants_environment = environment->count() > 0] {
      if (wants_environment) return show_environment(session.json, wants_markdown);
      const auto all = entries(*name);
      if (session.json) {
        print_rows(all);
      } else if (wants_markdown) {
        print_markdown(all);
        if (name->empty()) print_combinations();
      } else {
        if (name->empty()) print_text("syncopate {}\n\n", version());
        print_table(all);
      }
      return 0;
    };
  });
}

}  // namespace

extern constinit const Command info{
    .name = "info",
    .summary = "List what has a name: algorithms, codecs, policies, exchanges, commands",
    .define = define,
};

}  // namespace syncopate::tools::command
