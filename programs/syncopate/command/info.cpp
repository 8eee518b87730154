// `syncopate info`: the catalogues, as a table for people, rows for programs, or Markdown for documentation.
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "command.hpp"
#include "syncopate/server.hpp"
#include "syncopate/synchronizer.hpp"
#include "syncopate/tooling/combinations.hpp"
#include "syncopate/tooling/environment.hpp"
#include "syncopate/tooling/settings.hpp"
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

/// A variable or a setting, as the lists have it.
struct Described {
  std::string_view shelf, topic, name, values;
  std::string fallback, flag;
  std::string_view meaning;
};

std::vector<Described> described_variables() {
  std::vector<Described> all;
  for (const EnvironmentVariable& each : environment_variables())
    all.push_back({"variable", each.topic, each.name, each.values, std::string(each.fallback), "", each.meaning});
  return all;
}

std::vector<Described> described_settings() {
  std::vector<Described> all;
  const auto add = [&all]<class Options>(std::string_view topic, std::span<const Setting<Options>> settings) {
    for (const auto& each : settings)
      all.push_back({"setting", topic, each.name, each.values, each.text({}), std::string(each.flag), each.meaning});
  };
  add("coding", coding_settings());
  add("exchange", exchange_settings());
  add("plan", planning_settings());
  add("servers", worker_settings());
  return all;
}

constexpr const char* kEnvironmentPage =
    "# Environment variables\n\n"
    "Options of a program and of the API win over variables. A value that is not allowed ends the program with an "
    "error\nthat names the variable. `syncopate info --environment --markdown` prints this page.\n";
constexpr const char* kSettingsPage =
    "# Settings\n\n"
    "Options of a Synchronizer, a Combiner and a TableWorker: members of their option structs in C++, keyword\n"
    "arguments in Python, where those of `feedback` are of a `syncopate.Feedback`. **coding**: of all three\n"
    "(`CodingOptions`), how gradients become packets. **exchange**: of a Synchronizer; a Combiner has the first two.\n"
    "**plan**: of a Synchronizer; rank 0's apply. **servers**: of a TableWorker. All but those of the plan are\n"
    "the same on every rank or worker: a difference is a Mismatch that names the setting and both values.\n"
    "`syncopate info --settings --markdown` prints this page.\n";

void print_described(const std::vector<Described>& all) {
  for (const Described& each : all)
    print_text("{}\n    {}\n    allowed: {}; default: {}\n", each.name, each.meaning, each.values, each.fallback);
}

void print_described_rows(const std::vector<Described>& all) {
  for (const Described& each : all)
    print_row({{"shelf", each.shelf},
               {"name", each.name},
               {"summary", each.meaning},
               {"source", ""},
               {"values", each.values},
               {"default", each.fallback}});
}

void print_described_markdown(const char* page, const std::vector<Described>& all) {
  const bool has_flags = std::ranges::any_of(all, [](const Described& each) { return !each.flag.empty(); });
  print_text("{}", page);
  std::string_view topic;
  for (const Described& each : all) {
    if (each.topic != topic)
      print_text("\n## {}\n\n| {} | allowed | default | {}meaning |\n|---|---|---|{}---|\n", each.topic, each.shelf,
                 has_flags ? "`syncopate train` | " : "", has_flags ? "---|" : "");
    topic = each.topic;
    const std::string flag = each.flag.empty() ? "" : fmt::format("`{}`", each.flag);
    print_text("| `{}` | {} | {} | {}{} |\n", each.name, escaped(each.values), escaped(each.fallback),
               has_flags ? flag + " | " : "", escaped(each.meaning));
  }
}

void define(CLI::App& app, Session& session) {
  const auto name = std::make_shared<std::string>();
  app.add_option("NAME", *name, "Only what has this name, or stands on the shelf of this name: ring, codec");
  const auto* markdown = app.add_flag("--markdown")->description("Tables for documentation");
  const auto* environment =
      app.add_flag("--environment")->description("Environment variables instead of catalogue entries");
  const auto* settings = app.add_flag("--settings")->description("Settings of codecs instead of catalogue entries");
  app.callback([&session, markdown, environment, settings, name] {
    session.action = [&session, name, wants_markdown = markdown->count() > 0,
                      wants_environment = environment->count() > 0, wants_settings = settings->count() > 0] {
      if (wants_environment || wants_settings) {
        const auto all = wants_environment ? described_variables() : described_settings();
        if (session.json)
          print_described_rows(all);
        else if (wants_markdown)
          print_described_markdown(wants_environment ? kEnvironmentPage : kSettingsPage, all);
        else
          print_described(all);
        return 0;
      }
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
