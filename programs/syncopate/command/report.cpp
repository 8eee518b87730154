// `syncopate report RUN`: a page of a training run and its timeline for trace viewers; `report A B`: runs side by side.
#include "report/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "command.hpp"
#include "syncopate/error.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::command {
namespace {

using nlohmann::json;

struct ReportArguments {
  std::vector<std::string> runs;
  std::string output;
};

std::string seconds(double value) { return format_seconds(value); }
std::string percent(double value) { return fmt::format("{:.1f} %", 100 * value); }
std::string plain(double value) { return fmt::format("{:.4g}", value); }

/// A figure that runs are compared by. `has_ratio`: relative to the first run.
struct Figure {
  const char* key;
  const char* title;
  std::string (*text)(double value);
  bool has_ratio;
};
constexpr Figure kFigures[] = {{"step_s", "median step", seconds, true},
                               {"samples_per_second", "samples per second", format_rate, true},
                               {"wait_share", "waiting", percent, false},
                               {"forward_s", "forward", seconds, true},
                               {"backward_s", "backward", seconds, true},
                               {"exposed_s", "exposed exchange", seconds, true},
                               {"wire_bytes_per_step", "sent per step", format_bytes, true},
                               {"accuracy", "accuracy", percent, false},
                               {"loss", "loss", plain, false}};

std::string cell(const json& row, const json& first, const Figure& figure) {
  const auto found = row.find(figure.key), base = first.find(figure.key);
  if (found == row.end() || found->is_null()) return "-";
  const std::string text = figure.text(found->get<double>());
  const bool compares =
      figure.has_ratio && &row != &first && base != first.end() && !base->is_null() && base->get<double>() > 0;
  return compares ? fmt::format("{} (x{:.2f})", text, found->get<double>() / base->get<double>()) : text;
}

int compare(const Session& session, const ReportArguments& options) {
  if (!options.output.empty()) throw Misuse("--out is for the page of one run; allowed with several runs: none");
  std::vector<json> rows;
  for (const std::string& run : options.runs) rows.push_back(report::figures_of(run));
  if (session.json) {
    for (const json& row : rows) print_row(row);
    return 0;
  }
  const auto print_line = [&](const std::string& title, const auto& text_of) {
    std::string line = fmt::format("{:<20}", title);
    for (const json& row : rows) line += fmt::format("  {:>24}", text_of(row));
    print_text("{}\n", line);
  };
  print_line("", [](const json& row) { return row.at("run").get<std::string>(); });
  print_line("model", [](const json& row) { return row.at("model").get<std::string>(); });
  print_line("ranks, steps", [](const json& row) {
    return fmt::format("{}, {}", row.at("ranks").get<std::size_t>(), row.at("steps").get<std::uint64_t>());
  });
  for (const Figure& figure : kFigures) {
    const bool is_known = std::ranges::any_of(
        rows, [&](const json& row) { return row.contains(figure.key) && !row.at(figure.key).is_null(); });
    if (is_known) print_line(figure.title, [&](const json& row) { return cell(row, rows.front(), figure); });
  }
  return 0;
}

int write(const Session& session, const ReportArguments& options) {
  const json row = report::write_report(options.runs.front(), options.output);
  if (session.json) {
    print_row(row);
    return 0;
  }
  for (const auto& note : row.at("notes")) session.log.write(LogLevel::warning, note.get<std::string>());
  print_text("report  {}\n", row.at("report").get<std::string>());
  if (row.at("trace").is_string()) print_text("trace   {}\n", row.at("trace").get<std::string>());
  return 0;
}

void define(CLI::App& app, Session& session) {
  auto options = std::make_shared<ReportArguments>();
  app.add_option("RUN", options->runs,
                 "The folder that `syncopate train --out DIR` or syncopate.torch.Recorder wrote; several are compared")
      ->required();
  app.add_option("-o,--out,--output", options->output, "Where to write the page (default: report.html in RUN)");
  app.callback([&session, options] {
    session.action = [&session, options] {
      return options->runs.size() > 1 ? compare(session, *options) : write(session, *options);
    };
  });
}

}  // namespace

extern constinit const Command report;
constinit const Command report{"report", "Draw a training run as one self-contained HTML page, or compare several",
                               define};

}  // namespace syncopate::tools::command
