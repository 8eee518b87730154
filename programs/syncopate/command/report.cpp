// `syncopate report RUN`: one self-contained HTML page of a training run, and its timeline for trace viewers.
#include "report/report.hpp"

#include <fmt/format.h>

#include <memory>

#include "command.hpp"

namespace syncopate::tools::command {
namespace {

struct Options {
  std::string run;
  std::string output;
};

int write(const Session& session, const Options& options) {
  const nlohmann::json row = report::write_report(options.run, options.output);
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
  auto options = std::make_shared<Options>();
  app.add_option("RUN", options->run, "The folder that `syncopate train --out DIR` wrote")->required();
  app.add_option("-o,--out,--output", options->output, "Where to write the page (default: report.html in RUN)");
  app.callback([&session, options] { session.action = [&session, options] { return write(session, *options); }; });
}

}  // namespace

extern constinit const Command report;
constinit const Command report{"report", "Draw a training run as one self-contained HTML page", define};

}  // namespace syncopate::tools::command
