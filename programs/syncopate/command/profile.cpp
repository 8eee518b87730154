// `syncopate profile`: a model's layer times, measured by the training program or derived from what its layers compute.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "arguments.hpp"
#include "command.hpp"
#include "launch/sibling.hpp"
#include "profile/table.hpp"
#include "syncopate/error.hpp"
#include "syncopate/predict.hpp"
#include "syncopate/tooling/json.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::command {

namespace {

struct ProfileArguments {
  std::string output, table, architecture;
  double gflops = 0;
  int batch = 32;
  [[nodiscard]] bool derives() const { return !table.empty() || !architecture.empty(); }
};

void write(const ProfileArguments& options, const Profile& derived, const std::string& source) {
  auto layers = nlohmann::ordered_json::array();
  for (const ProfileLayer& layer : derived.layers)
    layers.push_back({{"name", layer.name}, {"elements", layer.bytes / 4}, {"backward_s", layer.backward_s}});
  const nlohmann::ordered_json profile{{"model", derived.model},
                                       {"forward_s", derived.forward_s},
                                       {"layers", layers},
                                       {"source", source + "; backward is twice forward"},
                                       {"batch", options.batch}};
  std::ofstream file(options.output, std::ios::trunc);
  file << text_of_json(profile, 1) << '\n';
  if (!file.flush()) throw SystemFailure(fmt::format("cannot write {}: {}", options.output, std::strerror(errno)));
}

int derive(const ProfileArguments& options, const Session& session) {
  const bool is_known = options.table.empty();
  const std::string name = is_known ? options.architecture : std::filesystem::path(options.table).stem().string();
  const Profile derived =
      derive_profile(name, is_known ? layers_of_architecture(name) : profile::read_table(options.table),
                     options.gflops * 1e9, options.batch);
  write(options, derived, is_known ? "architecture " + name : "layer table " + options.table);
  if (session.json)
    print_row({{"model", derived.model},
               {"forward_s", derived.forward_s},
               {"layers", derived.layers.size()},
               {"profile", options.output}});
  else
    print_text("{}: {} layers, forward {}, backward {}: {}\n", derived.model, derived.layers.size(),
               format_seconds(derived.forward_s), format_seconds(2 * derived.forward_s), options.output);
  return 0;
}

int make_profile(const ProfileArguments& options, const Session& session, std::vector<std::string> words) {
  if (options.output.empty()) throw Misuse("profile needs -o FILE, where to write the profile");
  if (!options.table.empty() && !options.architecture.empty())
    throw Misuse("--table excludes --architecture; give one of them");
  if (options.derives() && options.gflops == 0)
    throw Misuse("--table and --architecture need --throughput-gflops: what the machine computes");
  if (!options.derives() && options.gflops > 0)
    throw Misuse("--throughput-gflops needs --table or --architecture; measuring does not use it");
  if (options.derives()) {
    if (!words.empty())
      throw Misuse(fmt::format("option '{}' is not allowed with --table or --architecture, which measure nothing",
                               words.front()));
    return derive(options, session);
  }
  for (std::string word :
       {std::string("--profile"), options.output, std::string("--batch"), fmt::format("{}", options.batch)})
    words.push_back(std::move(word));
  launch::become(launch::kTrainer, session, std::move(words));
}

void define(CLI::App& app, Session& session) {
  const auto options = std::make_shared<ProfileArguments>();
  app.add_option("-o,--out,--output", options->output, "File to write, which `syncopate plan` and `simulate` read")
      ->type_name("FILE");
  app.add_option("--batch", options->batch, "Samples of a step")->check(between(1, 1 << 24))->capture_default_str();
  app.add_option(
         "--table", options->table,
         "Instead of measuring: layers from a CSV file with columns name, elements, flops (forward, one sample)")
      ->type_name("FILE")
      ->check(input_file());
  app.add_option("--architecture", options->architecture,
                 "Instead of measuring: a published network of the catalogue (`syncopate info`)")
      ->type_name("NAME");
  app.add_option("--throughput-gflops", options->gflops, "For the last two: what the machine computes, in 1e9 FLOP/s")
      ->check(above_zero());
  app.allow_extras();
  app.footer(
      "Measuring takes further options of `syncopate train`: --model (required), --steps (at least 20), --threads,\n"
      "the sizes of the transformer. It trains on a synthetic batch without communication; inside `syncopate run -n "
      "N`\n"
      "all N ranks do so at once, each competing with the others as in training. The file states their number.");
  app.callback([&app, &session, options] {
    session.action = [options, &session, words = words_behind(app)] { return make_profile(*options, session, words); };
  });
}

}  // namespace

extern constinit const Command profile;
const Command profile{
    .name = "profile",
    .summary = "Measure a model's layer times into a profile, or derive them from what its layers compute",
    .define = define,
};

}  // namespace syncopate::tools::command
