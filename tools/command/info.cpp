// `syncopate info`: the catalogues, as a table for people, rows for programs, or Markdown for documentation.
#include <fmt/format.h>

#include <algorithm>

#include "command.hpp"
#include "syncopate/catalogue.hpp"
#include "syncopate/version.hpp"

namespace syncopate::tools::command {

namespace {

std::vector<CatalogueEntry> entries() {
  std::vector<CatalogueEntry> all = catalogue();
  for (const Command* command : commands()) all.push_back({"command", command->name, command->summary, ""});
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
  fmt::print("syncopate {}\n", version());
  std::size_t width = 0;
  for (const CatalogueEntry& entry : all) width = std::max(width, entry.name.size());
  std::string_view shelf;
  for (const CatalogueEntry& entry : all) {
    if (entry.shelf != shelf) fmt::print("\n{}\n", shelf = entry.shelf);
    fmt::print("  {:<{}}  {}\n", entry.name, width, entry.summary);
    if (!entry.source.empty()) fmt::print("  {:<{}}  [{}]\n", "", width, entry.source);
  }
}

void define(CLI::App& app, Session& session) {
  const auto* markdown = app.add_flag("--markdown")->description("Tables for documentation");
  app.callback([&session, markdown] {
    session.action = [&session, wants_markdown = markdown->count() > 0] {
      const auto all = entries();
      if (session.json) {
        print_rows(all);
      } else if (wants_markdown) {
        print_markdown(all);
      } else {
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
