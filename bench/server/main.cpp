// bench_server: one worker of `syncopate bench server`, which starts as many as it measures with.
#include <CLI/CLI.hpp>
#include <exception>
#include <memory>
#include <string>

#include "arguments.hpp"
#include "server/measure.hpp"
#include "server/replay.hpp"
#include "syncopate/error.hpp"
#include "syncopate/tooling/standard_streams.hpp"

namespace {

using namespace syncopate;

/// Worker 0 prints a row, the other workers nothing.
void print(const std::string& row) {
  if (!row.empty()) write_output(row + "\n");
}

void define_measure(CLI::App& app) {
  CLI::App* sub = app.add_subcommand("measure", "Rounds of updates and answers of one size");
  const auto measured = std::make_shared<bench::Measured>();
  sub->add_option("--bytes", measured->bytes)->required()->check(tools::at_least(std::uint64_t{0}));
  sub->add_option("--contender", measured->contender);
  sub->add_option("--tables", measured->tables)->check(tools::at_least(1));
  sub->add_option("--untimed", measured->untimed)->check(tools::at_least(0));
  sub->add_option("--timed", measured->timed)->check(tools::at_least(1));
  sub->final_callback([measured] { print(bench::measure(*measured)); });
}

void define_replay(CLI::App& app) {
  CLI::App* sub = app.add_subcommand("replay", "Steps of a model, computing replaced by sleeping");
  const auto replayed = std::make_shared<bench::Replayed>();
  sub->add_option("--architecture", replayed->architecture)->required();
  sub->add_option("--contender", replayed->contender)->required();
  for (const auto& [name, value] :
       {std::pair("--flow", &replayed->flow), std::pair("--consistency", &replayed->consistency),
        std::pair("--codec", &replayed->codec), std::pair("--answers", &replayed->answers),
        std::pair("--placement", &replayed->placement)})
    sub->add_option(name, *value);
  sub->add_option("--step-seconds", replayed->step_s)->check(tools::not_negative());
  sub->add_option("--untimed", replayed->untimed)->check(tools::at_least(0));
  sub->add_option("--blocks", replayed->blocks)->check(tools::at_least(1));
  sub->final_callback([replayed] { print(bench::replay(*replayed)); });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("One worker of `syncopate bench server`.");
  app.require_subcommand(1);
  define_measure(app);
  define_replay(app);
  try {
    app.parse(argc, argv);
    finish_output();
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  } catch (const Error& error) {
    write_error(std::string("syncopate bench server: ") + error.what() + "\n");
    return exit_code_of(error.kind());
  } catch (const std::exception& error) {
    write_error(std::string("syncopate bench server: ") + error.what() + "\n");
    return exit_code_of(ErrorKind::system_failure);
  }
}
