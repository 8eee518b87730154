// The command line of syncopate-train: names, defaults and limits.
#include "options.hpp"

#include <CLI/CLI.hpp>
#include <sstream>

#include "arguments.hpp"
#include "job_file.hpp"
#include "model_options.hpp"
#include "option_checks.hpp"
#include "recipe/part.hpp"
#include "recipe/recipe_options.hpp"
#include "require.hpp"
#include "syncopate/tooling/settings.hpp"
#include "syncopate/tooling/standard_streams.hpp"
#include "syncopate/tooling/units.hpp"
#include "syncopate/version.hpp"

namespace syncopate::train {
namespace {

using tools::above_zero, tools::at_least, tools::between, tools::not_negative;

constexpr std::uint64_t kNone = 0, kOne = 1;  ///< least values of options

Slowness slowness_of(const std::string& text) {
  Slowness slow;
  int used = 0;
  const int fields = std::sscanf(text.c_str(), "%d:%lf%n:%lf%n", &slow.rank, &slow.factor, &used, &slow.share, &used);
  require(
      fields >= 2 && used == static_cast<int>(text.size()) && slow.rank >= 0 && slow.factor >= 1 &&
          slow.factor <= 1000 && slow.share > 0 && slow.share <= 1,
      "--slow {}; allowed: RANK:FACTOR or RANK:FACTOR:SHARE, a factor from 1 to 1000 and a share above 0, at most 1",
      text);
  return slow;
}

/// The settings of a table that have an option.
template <class Given>
void add_settings(CLI::App& app, std::span<const syncopate::Setting<Given>> settings, Given& given) {
  for (const auto& setting : settings) {
    if (setting.flag.empty()) continue;
    const std::string flag(setting.flag), meaning(setting.meaning);
    if (setting.is_switch())
      app.add_flag_callback(
          flag, [&given, &setting] { setting.read(given, "true"); }, meaning);
    else
      app.add_option_function<std::string>(
             flag, [&given, &setting](const std::string& text) { setting.read(given, text); }, meaning)
          ->type_name(std::string(tools::type_name(setting.allowed)))
          ->check(tools::allowed(setting.flag, setting.allowed, setting.values))
          ->default_str(setting.text({}));
  }
}

void add_exchange(CLI::App& app, Options& o) {
  add_settings(app, planning_settings(), o.sync);
  add_settings(app, exchange_settings(), o.sync);
  add_settings(app, worker_settings(), o.worker);
  add_settings(app, coding_settings(), o.sync.coding);
  app.add_option(
      "--cluster", o.cluster,
      "cluster file (`syncopate fit`) with the costs of exchanges, for policies that use them; without it they are "
      "measured in the first steps");
  app.add_flag("--force", o.force, "with --cluster: use the codec even if it is predicted to be slower than none");
  app.add_option_function<std::string>(
      "--slow", [&o](const std::string& text) { o.slow = slowness_of(text); },
      "RANK:FACTOR[:SHARE]: this rank sleeps in this share of its steps, as if it were slower by the factor");
  app.add_flag("--serial", o.serial, "compute, then communicate: no overlap, for comparison; same results bit for bit");
  app.add_flag("--code-inline", o.code_inline,
               "encode and decode on the communicating thread, not on another one, for comparison; same results");
}

void add_amounts(CLI::App& app, Options& o) {
  app.add_option("--steps", o.steps, "end after this many steps in all")->check(at_least(kOne));
  app.add_option("--epochs", o.epochs, "end after this many epochs in all (default 1)")->check(at_least(kOne));
  app.add_option("--batch", o.batch, "samples per rank and micro-batch")
      ->capture_default_str()
      ->check(between(1, 1 << 24));
  app.add_option("--global-batch", o.global_batch, "samples per step over all ranks, independent of their number")
      ->check(between(1, 1 << 30));
  app.add_option("--accumulate", o.accumulate, "micro-batches per step")
      ->capture_default_str()
      ->check(between(1, 1 << 20));
  app.add_option("--seed", o.seed, "seed of initial values, order and augmentation (default 1)")
      ->check(at_least(kNone));
  app.add_flag("--augment", o.augment, "images: random crops and mirror images");
  app.add_option("--threads", o.threads, "computing threads per rank")->capture_default_str()->check(between(1, 1024));
}

void add_optimizer(CLI::App& app, Options& o) {
  app.add_option("--optimizer", o.optimizer, "sgd, adam, adamw, adagrad, lars or lamb (`syncopate info optimizer`)")
      ->capture_default_str();
  app.add_option("--lr", o.learning_rate, "learning rate (default: the model's, for sgd)")->check(above_zero());
  app.add_option("--momentum", o.momentum, "sgd, lars: 0 to 1 (default 0.9)")->check(between(0.0, 1.0));
  app.add_flag("--nesterov", o.nesterov, "sgd: Nesterov's momentum");
  app.add_option("--weight-decay", o.weight_decay, "all (default: sgd, lars: 0.0001; adam: 0; others: 0.01)")
      ->check(not_negative());
  app.add_option("--beta1", o.beta1, "adam, adamw, lamb: decay of the gradient's mean (default 0.9)")
      ->check(between(0.0, 1.0));
  app.add_option("--beta2", o.beta2, "adam, adamw, lamb: decay of the mean of its square (default 0.999)")
      ->check(between(0.0, 1.0));
  app.add_option("--epsilon", o.epsilon,
                 "adam, adamw, lamb: added to the root of the square's mean (default 1e-8; lamb: 1e-6)")
      ->check(not_negative());
  app.add_option("--trust", o.trust, "lars: trust coefficient (default 0.001)")->check(not_negative());
  app.add_flag(
      "--share-norms", o.share_norms,
      "lars, lamb: each rank computes its part of the norms and receives the others (always with exchange sharded)");
  app.add_option("--warmup", o.warmup, "steps in which the learning rate grows linearly (default: the model's)")
      ->check(at_least(kNone));
  app.add_option("--milestones", o.milestones, "steps at which the learning rate is multiplied by --decay")
      ->check(at_least(kNone))
      ->delimiter(',');
  app.add_option("--decay", o.decay)->capture_default_str()->check(not_negative());
  app.add_option(
         "--clip", o.clip,
         "largest global L2 norm of the gradient; 0: any (default: the model's; with --feedback momentum it is instead "
         "--local-clip's default, times sqrt(ranks))")
      ->check(not_negative());
}

void add_results(CLI::App& app, Options& o) {
  app.add_option("--evaluate-every", o.evaluate_every,
                 "steps between evaluations; 0: never (default: after every epoch and at the end)")
      ->check(at_least(kNone));
  app.add_option(
         "--evaluate-samples", o.evaluate_samples,
         "number of held-out samples to evaluate on, evenly spread; 0: all (default: all images, 1024 pieces of text)")
      ->check(at_least(kNone));
  app.add_option("--checkpoint", o.checkpoint, "file to write checkpoints to");
  app.add_option("--checkpoint-every", o.checkpoint_every, "steps between checkpoints (default: at the end only)")
      ->check(at_least(kOne))
      ->needs("--checkpoint");
  app.add_flag("--stop-on-nan", o.stop_on_nan, "end with an error when a loss or a gradient is not finite");
  app.add_option("--resume", o.resume,
                 "checkpoint to resume from, on any number of ranks; with servers every worker reads it");
  app.add_option("-o,--out,--output", o.out, "folder for the run's record, the input of `syncopate report`");
  app.add_flag("--json", o.json, "one JSON object a line on stdout");
  app.add_option("--report-every", o.report_every, "steps between reports (default: 1 with --json)")
      ->check(at_least(kOne));
  app.add_option("--trace-step", o.trace_step, "the step whose timeline is recorded in --out (default 10, or the last)")
      ->check(at_least(kOne))
      ->needs("--out");
  app.add_option(
      "--profile", o.profile,
      "measure forward time and layers' backward times on a synthetic batch, without communication, and write "
      "them to this file (`syncopate profile`)");
  app.add_option("--log-level", o.log_level, "error, warning, info, debug or off");
}

/// Whether ranks may give different values of an option: speed, place and output of a rank, and files and folders,
/// which may have other names on other hosts. All ranks or none must give the latter.
bool is_own(const std::string& option) {
  for (const char* own :
       {"--threads", "--input-threads", "--cache", "--cache-folder", "--cache-disk", "--cache-decoded", "--log-level",
        "--json", "--report-every", "--resume", "--data", "--config"})
    if (option == own) return true;
  return false;
}
bool is_path(const std::string& option) {
  for (const char* path : {"--checkpoint", "--out", "--cluster", "--profile", "--recipe"})
    if (option == path) return true;
  return false;
}

/// Values as they were written; an option that no rank gave is equal on all.
std::vector<Setting> shared_settings(const CLI::App& app) {
  std::vector<Setting> settings;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (is_own(name)) continue;
    std::string value = option->get_default_str().empty() ? "not given" : option->get_default_str();
    if (option->count() > 0) value = is_path(name) ? "given" : CLI::detail::join(option->results(), " ");
    settings.push_back({name, value});
  }
  return settings;
}

std::string command_of(int argc, char** argv) {
  std::string command = "syncopate train";
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool plain = !argument.empty() && argument.find_first_of(" \t\"'$&|;<>()*?\\`") == std::string::npos;
    command += plain ? " " + argument : fmt::format(" '{}'", argument);
  }
  return command;
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv) {
  Options options;
  CLI::App app("Data-parallel training. Started alone it has one rank; `syncopate run` starts it on several.");
  app.name("syncopate-train");
  app.set_version_flag("--version", std::string(version()));
  add_model_options(app, options);
  add_recipe_option(app, options);
  add_exchange(app, options);
  add_amounts(app, options);
  add_optimizer(app, options);
  add_results(app, options);
  std::string config;
  tools::add_job_file(app, "train", config);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    std::ostringstream text;
    app.exit(asked, text);
    write_output(text.str());
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw Misuse(fmt::format("{} (--help lists the options)", tools::refusal_of(app, error)));
  }
  options.is_clip_given = app.count("--local-clip") > 0;
  options.command = command_of(argc, argv);
  read_recipe_option(app, options);
  options.shared = shared_settings(app);
  if (!options.steps && !options.epochs) options.epochs = 1;
  const std::vector<Part> parts = parts_of(options);
  if (options.recipe) options.shared.push_back({"the number of parts of --recipe", std::to_string(parts.size())});
  for (const Part& part : parts) {
    in_part(part, [&] { check(part.options); });
    if (options.recipe) options.shared.push_back({fmt::format("part {} of --recipe", part.number), text_of(part)});
  }
  std::vector<const Options*> every;
  for (const Part& part : parts) every.push_back(&part.options);
  check_effect(app, every);
  return options;
}

}  // namespace syncopate::train
