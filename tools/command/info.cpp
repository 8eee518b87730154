// `syncopate info`: the catalogues, as a table for people, rows for programs, or Markdown for documentation.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "command.hpp"
#include "syncopate/error.hpp"
#include "syncopate/tooling/catalogue.hpp"
#include "syncopate/tooling/names.hpp"
#include "syncopate/version.hpp"

namespace syncopate::tools::command {

namespace {

/// All, or those of that name, or of the shelf of that name.
std::vector<CatalogueEntry> entries(const std::string& name) {
  std::vector<CatalogueEntry> all = catalogue();
  for (const Command* command : commands()) all.push_back({"command", command->name, command->summary, ""});
  if (name.empty()) return all;
  std::vector<std::string_view> known;
  for (const CatalogueEntry& entry : all) {
    if (std::ranges::find(known, entry.shelf) == known.end()) known.push_back(entry.shelf);
    if (std::ranges::find(known, entry.name) == known.end()) known.push_back(entry.name);
  }
  std::erase_if(all, [&](const CatalogueEntry& entry) { return entry.name != name && entry.shelf != name; });
  if (all.empty()) throw Misuse(unknown_name("name", name, known));
  return all;
}

void print_rows(const std::vector<CatalogueEntry>& all) {
  for (const CatalogueEntry& entry : all)
    print_row({{"shelf", entry.shelf}, {"name", entry.name}, {"summary", entry.summary}, {"source", entry.source}});
}

std::string escaped(std::string_view text) {
  std::string cell;
  for (const char c : text) cell += c == '|' ? std::string("\\|") : std::string(1, c);
  return cell;
}

void print_markdown(const std::vector<CatalogueEntry>& all) {
  std::string_view shelf;
  for (const CatalogueEntry& entry : all) {
    if (entry.shelf != shelf) {
      fmt::print("{}## {}\n\n| name | what it is | source |\n|---|---|---|\n", shelf.empty() ? "" : "\n", entry.shelf);
      shelf = entry.shelf;
    }
    fmt::print("| `{}` | {} | {} |\n", entry.name, escaped(entry.summary), escaped(entry.source));
  }
}

void print_table(const std::vector<CatalogueEntry>& all) {
  std::size_t width = 0;
  for (const CatalogueEntry& entry : all) width = std::max(width, entry.name.size());
  std::string_view shelf;
  for (const CatalogueEntry& entry : all) {
    if (entry.shelf != shelf) fmt::print("{}{}\n", shelf.empty() ? "" : "\n", entry.shelf);
    shelf = entry.shelf;
    fmt::print("  {:<{}}  {}\n", entry.name, width, entry.summary);
    if (!entry.source.empty()) fmt::print("  {:<{}}  [{}]\n", "", width, entry.source);
  }
}

void define(CLI::App& app, Session& session) {
  const auto name = std::make_shared<std::string>();
  app.add_option("NAME", *name, "Only what has this name, or stands on the shelf of this name: ring, codec");
  const auto* markdown = app.add_flag("--markdown")->description("Tables for documentation");
  app.callback([&session, markdown, name] {
    session.action = [&session, name, wants_markdown = markdown->count() > 0] {
      const auto all = entries(*name);
      if (session.json) {
        print_rows(all);
      } else if (wants_markdown) {
        print_markdown(all);
      } else {
        if (name->empty()) fmt::print("syncopate {}\n\n", version());
        print_table(all);
      }
      return 0;
    };
  });
}

}  // namespace

extern constinit const Command info{
    .name = "info",
    .summary = "What can be chosen by name: algorithms, codecs, policies, exchanges, commands",
    .define = define,
};

}  // namespace syncopate::tools::command
