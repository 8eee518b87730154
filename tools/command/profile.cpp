// `syncopate profile`: a model's layer times, measured by the training program or derived from a layer table.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "command.hpp"
#include "launch/trainer.hpp"
#include "profile/table.hpp"
#include "syncopate/error.hpp"
#include "syncopate/units.hpp"

namespace syncopate::tools::command {

namespace {

struct Options {
  std::string output, table;
  double gflops = 0;
  std::uint64_t batch = 32;
};

int derive(const Options& options, const Session& session) {
  const std::vector<profile::TableLayer> layers = profile::read_table(options.table);
  const std::string name = std::filesystem::path(options.table).stem().string();
  const std::string model = fmt::format("{}, batch {}, at {} GFLOP/s", name, options.batch, options.gflops);
  auto result = profile::profile_of(model, layers, {options.gflops * 1e9, static_cast<double>(options.batch)});
  result["source"] = fmt::format("layer table {}; backward is twice forward", options.table);
  result["batch"] = options.batch;
  std::ofstream file(options.output, std::ios::trunc);
  file << result.dump(1) << '\n';
  if (!file.flush()) throw SystemFailure(fmt::format("cannot write {}: {}", options.output, std::strerror(errno)));
  const auto forward_s = result["forward_s"].get<double>();
  if (session.json)
    print_row({{"model", model}, {"forward_s", forward_s}, {"layers", layers.size()}, {"profile", options.output}});
  else
    fmt::print("{}: {} layers, forward {}, backward {}: {}\n", model, layers.size(), format_seconds(forward_s),
               format_seconds(2 * forward_s), options.output);
  return 0;
}

int make_profile(const Options& options, const Session& session, std::vector<std::string> words) {
  if (options.output.empty()) throw Misuse("profile needs -o FILE, where to write the profile");
  if (options.table.empty() != (options.gflops == 0))
    throw Misuse("--table and --throughput-gflops go together: a profile follows from both");
  if (!options.table.empty()) {
    if (!words.empty()) throw Misuse(fmt::format("'{}' is no option of a profile from a --table", words.front()));
    return derive(options, session);
  }
  for (std::string word :
       {std::string("--profile"), options.output, std::string("--batch"), fmt::format("{}", options.batch)})
    words.push_back(std::move(word));
  launch::become_trainer(session, std::move(words));
}

void define(CLI::App& app, Session& session) {
  const auto options = std::make_shared<Options>();
  app.add_option("-o,--output", options->output, "File to write, which `syncopate plan` and `simulate` read")
      ->type_name("FILE");
  app.add_option("--batch", options->batch, "Samples of a step")
      ->check(CLI::Range(1U, 1U << 24))
      ->capture_default_str();
  app.add_option(
         "--table", options->table,
         "Instead of measuring: layers from a CSV file with columns name, elements, flops (forward, one sample)")
      ->type_name("FILE");
  app.add_option("--throughput-gflops", options->gflops, "With --table: what the machine computes, in 1e9 FLOP/s")
      ->check(CLI::PositiveNumber);
  app.allow_extras();
  app.footer(
      "Measuring takes further options of `syncopate train`: --model (required), --steps (at least 20), --threads, "
      "the\n"
      "sizes of the transformer. It trains on a made-up batch without communication; inside `syncopate run -n N` all "
      "N\n"
      "ranks do so at once, each competing with the others as in training. The file says how many there were.");
  app.callback([&app, &session, options] {
    session.action = [options, &session, words = program_behind(app)] {
      return make_profile(*options, session, words);
    };
  });
}

}  // namespace

extern constinit const Command profile;
const Command profile{
    .name = "profile",
    .summary = "Measure a model's layer times into a profile, or derive them from a layer table",
    .define = define,
};

}  // namespace syncopate::tools::command
