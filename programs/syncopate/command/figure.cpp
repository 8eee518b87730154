// `syncopate figure ROWS…`: draws rows that other commands wrote with --json as one SVG of curves.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <set>

#include "arguments.hpp"
#include "command.hpp"
#include "figure/curves.hpp"
#include "figure/lanes.hpp"
#include "syncopate/error.hpp"

namespace syncopate::tools::command {
namespace {

struct FigureArguments {
  std::vector<std::string> files;
  figure::Choice choice;
  std::string logarithmic = "x,y";
  std::string title, x_title, y_title;
  bool lanes = false;
  std::string output;
};

std::vector<nlohmann::json> rows_in(std::istream& input, const std::string& name) {
  std::vector<nlohmann::json> rows;
  std::string line;
  for (int number = 1; std::getline(input, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    rows.push_back(nlohmann::json::parse(line, nullptr, false));
    if (!rows.back().is_object()) throw Corrupt(fmt::format("{}:{}: not one JSON object on a line", name, number));
  }
  return rows;
}

std::vector<nlohmann::json> rows_of(const std::vector<std::string>& files) {
  std::vector<nlohmann::json> rows;
  for (const std::string& file : files) {
    std::ifstream opened;
    if (file != "-") opened.open(file);
    if (file != "-" && !opened) throw Misuse(fmt::format("cannot read {}: {}", file, std::strerror(errno)));
    for (nlohmann::json& row : rows_in(file == "-" ? std::cin : opened, file)) rows.push_back(std::move(row));
  }
  return rows;
}

figure::AxisTitle axis(const std::string& key, const std::string& title, bool logarithmic) {
  const bool twos = key.find("bytes") != std::string::npos || key == "ranks" || key == "speedup";
  return {title.empty() ? key : title, !logarithmic ? svg::Steps::linear : twos ? svg::Steps::twos : svg::Steps::tens};
}

/// The keys of the rows, for the error about a missing key.
std::string keys_of(const std::vector<nlohmann::json>& rows) {
  std::set<std::string> keys;
  for (const nlohmann::json& row : rows)
    for (const auto& [key, value] : row.items()) keys.insert(key);
  return rows.empty() ? "there are no rows" : fmt::format("their keys: {}", fmt::join(keys, ", "));
}

/// The figure, and how many curves or panels it has.
std::pair<std::string, std::size_t> curves(const FigureArguments& options) {
  const std::vector<nlohmann::json> rows = rows_of(options.files);
  std::vector<figure::Curve> drawn = figure::curves_of(rows, options.choice);
  if (drawn.empty())
    throw Misuse(fmt::format("nothing to draw: no row has numbers under both \"{}\" (--x) and \"{}\" (--y); {}",
                             options.choice.x, options.choice.y, keys_of(rows)));
  const bool log_x = options.logarithmic.find('x') != std::string::npos;
  const bool log_y = options.logarithmic.find('y') != std::string::npos;
  const figure::Plot plot{
      .title = options.title.empty() ? fmt::format("{} over {}", options.choice.y, options.choice.x) : options.title,
      .x = axis(options.choice.x, options.x_title, log_x),
      .y = axis(options.choice.y, options.y_title, log_y),
      .curves = std::move(drawn)};
  return {figure::svg_of(plot), plot.curves.size()};
}

std::pair<std::string, std::size_t> lanes(const FigureArguments& options) {
  const std::vector<nlohmann::json> rows = rows_of(options.files);
  const auto panels = figure::panels_of(rows, options.choice.by);
  if (panels.empty())
    throw Misuse(
        fmt::format("nothing to draw: no row has \"track\", \"begin_s\" and \"end_s\", as those of "
                    "`simulate --timeline` do; {}",
                    keys_of(rows)));
  return {figure::svg_of_lanes(options.title, panels), panels.size()};
}

int draw(const Session& session, const FigureArguments& options) {
  const auto [svg, count] = options.lanes ? lanes(options) : curves(options);
  std::ofstream file(options.output, std::ios::trunc);
  file << svg;
  if (!file.flush()) throw SystemFailure(fmt::format("cannot write {}: {}", options.output, std::strerror(errno)));
  if (session.json) print_row({{"figure", options.output}, {"curves", count}});
  return 0;
}

void define(CLI::App& app, Session& session) {
  const auto options = std::make_shared<FigureArguments>();
  app.add_option("ROWS", options->files, "Files of rows, one JSON object a line; - reads standard input")
      ->required()
      ->check(input_file());
  app.add_option("--x", options->choice.x, "Key on the horizontal axis")->capture_default_str();
  app.add_option("--y", options->choice.y, "Key on the vertical axis; {median, min, max} is drawn with its spread")
      ->capture_default_str();
  app.add_option("--by", options->choice.by, "Keys whose values distinguish the curves")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--log", options->logarithmic, "Logarithmic axes: x,y or x or y or none")
      ->check(one_of("axes", {"x,y", "x", "y", "none"}))
      ->capture_default_str();
  app.add_option("--title", options->title, "Title of the figure");
  app.add_option("--x-title", options->x_title, "Title of the horizontal axis (default: its key)");
  app.add_option("--y-title", options->y_title, "Words on the vertical axis (default: its key)");
  app.add_flag("--lanes", options->lanes,
               "Draw rows of `simulate --timeline`: computing above exchanges, one panel for each value of --by");
  app.add_option("-o,--out,--output", options->output, "The SVG file")->required();
  app.callback([options, &session] { session.action = [options, &session] { return draw(session, *options); }; });
}

}  // namespace

extern constinit const Command figure;
constinit const Command figure{"figure", "Draw rows of measurements as curves, or timelines as lanes (SVG)", define};

}  // namespace syncopate::tools::command
