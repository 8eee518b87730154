// `syncopate figure ROWS…`: draws rows that other commands wrote with --json as one SVG of curves.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>

#include "command.hpp"
#include "figure/curves.hpp"
#include "syncopate/error.hpp"

namespace syncopate::tools::command {
namespace {

struct Options {
  std::vector<std::string> files;
  figure::Choice choice;
  std::string logarithmic = "x,y";
  std::string title;
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

figure::AxisTitle axis(const std::string& key, bool logarithmic) {
  const bool twos = key.find("bytes") != std::string::npos || key == "ranks";
  return {key, !logarithmic ? figure::Steps::linear : twos ? figure::Steps::twos : figure::Steps::tens};
}

int draw(const Session& session, const Options& options) {
  const bool log_x = options.logarithmic.find('x') != std::string::npos;
  const bool log_y = options.logarithmic.find('y') != std::string::npos;
  const figure::Plot plot{
      .title = options.title.empty() ? fmt::format("{} over {}", options.choice.y, options.choice.x) : options.title,
      .x = axis(options.choice.x, log_x),
      .y = axis(options.choice.y, log_y),
      .curves = figure::curves_of(rows_of(options.files), options.choice)};
  const std::string svg = figure::svg_of(plot);
  std::ofstream file(options.output, std::ios::trunc);
  file << svg;
  if (!file.flush()) throw SystemFailure(fmt::format("cannot write {}: {}", options.output, std::strerror(errno)));
  if (session.json) print_row({{"figure", options.output}, {"curves", plot.curves.size()}});
  return 0;
}

void define(CLI::App& app, Session& session) {
  const auto options = std::make_shared<Options>();
  app.add_option("ROWS", options->files, "Files of rows, one JSON object a line; - reads standard input")->required();
  app.add_option("--x", options->choice.x, "Key on the horizontal axis")->capture_default_str();
  app.add_option("--y", options->choice.y, "Key on the vertical axis; {median, min, max} is drawn with its spread")
      ->capture_default_str();
  app.add_option("--by", options->choice.by, "Keys whose values tell curves apart")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--log", options->logarithmic, "Logarithmic axes: x,y or x or y or none")
      ->check(CLI::IsMember({"x,y", "x", "y", "none"}))
      ->capture_default_str();
  app.add_option("--title", options->title, "What the figure shows");
  app.add_option("--output,-o", options->output, "The SVG file")->required();
  app.callback([options, &session] { session.action = [options, &session] { return draw(session, *options); }; });
}

}  // namespace

extern constinit const Command figure;
constinit const Command figure{"figure", "Draw rows of measurements as curves (SVG)", define};

}  // namespace syncopate::tools::command
