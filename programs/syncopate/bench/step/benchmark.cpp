// Step benchmark: the variants, the jobs that it runs of them in turn, and what it shows.
#include "bench/step/benchmark.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "arguments.hpp"
#include "bench/options.hpp"
#include "bench/scratch.hpp"
#include "bench/step/pytorch.hpp"
#include "lab/lab.hpp"
#include "launch/launch.hpp"
#include "progress.hpp"
#include "syncopate/error.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::bench {

namespace {

constexpr int kWarmup = 10;  // steps: caches, connections, what policies that weigh times measure

class StepRounds final {
 public:
  StepRounds(const StepRequest& request, const Session& session)
      : request_(request),
        session_(session),
        progress_(session, "bench step"),
        variants_(variants_of(request)),
        steps_(variants_.size(), Steps(kWarmup)) {
    if (request.lab.empty()) return;
    lab_.emplace(lab::Lab::start({.hosts = launch::lab_hosts(request.ranks, request.ranks_per_host),
                                  .rate = request.lab,
                                  .name = fmt::format("bench{}", getpid())}));
  }

  /// The exit code of the first job that failed, 0 if none did.
  int run() {
    std::vector<std::size_t> order(variants_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (int round = 0; round < request_.rounds; ++round) {
      for (const std::size_t variant : order) {
        progress_.show(fmt::format("round {}/{}, {}", round + 1, request_.rounds, variants_[variant].text()));
        if (const int code = run_one(variant); code != 0) return code;
      }
      std::rotate(order.begin(), order.begin() + 1, order.end());
    }
    progress_.clear();
    return 0;
  }

  [[nodiscard]] const std::vector<StepVariant>& variants() const { return variants_; }
  [[nodiscard]] const Steps& steps_of(std::size_t variant) const { return steps_[variant]; }
  [[nodiscard]] const Steps& ceiling() const { return steps_.front(); }

 private:
  std::vector<std::string> program_of(const StepVariant& variant) {
    const std::string steps = fmt::format("{}", kWarmup + request_.steps);
    if (!variant.is_own()) {
      std::vector<std::string> words = request_.words;
      words.insert(words.end(), {"--steps", steps});
      return pytorch_program(variant, fmt::format("{}/meeting-{}", scratch_.path(), ++meetings_), words);
    }
    std::vector<std::string> words{session_.program, "train"};
    words.insert(words.end(), request_.words.begin(), request_.words.end());
    for (const std::string& word : {std::string("--json"), std::string("--evaluate-every"), std::string("0"),
                                    std::string("--steps"), steps, std::string("--policy"), variant.policy,
                                    std::string("--codec"), variant.codec, std::string("--exchange"), variant.exchange})
      words.push_back(word);
    return words;
  }

  int run_one(std::size_t variant) {
    launch::JobOptions job;
    job.ranks = request_.ranks;
    job.lab = lab_ ? &*lab_ : nullptr;
    job.ranks_per_host = request_.ranks_per_host;
    job.program = program_of(variants_[variant]);
    steps_[variant].begin_round();
    std::string errors;
    const launch::job::End end = launch::run_job(job, [&](const launch::job::Line& line) {
      if (line.stream == launch::job::Stream::error) errors += fmt::format("{}\n", line.text);
      if (line.stream == launch::job::Stream::output) steps_[variant].take(std::string(line.text), line.rank);
    });
    if (end.exit_code() == 0) return 0;
    progress_.clear();
    session_.log.write(LogLevel::error,
                       fmt::format("{}: {}\n{}", variants_[variant].text(), end.description(), errors));
    return end.exit_code();
  }

  const StepRequest& request_;
  const Session& session_;
  Progress progress_;
  std::vector<StepVariant> variants_;
  std::vector<Steps> steps_;  ///< by variant
  std::optional<lab::Lab> lab_;
  Scratch scratch_;  ///< where ranks of PyTorch meet
  int meetings_ = 0;
};

StepNetwork network_of(const StepRequest& request) {
  return {.ranks = request.ranks,
          .ranks_per_host = request.ranks_per_host,
          .bits_per_s = request.lab.empty() ? 0 : parse_rate(request.lab)};
}

void print_table(const StepRounds& rounds, const StepRequest& request) {
  print_text(
      "step of {}, {} ranks{}, {} of gradients: {} rounds of {} steps, interleaved; rank 0, medians in ms\n{}",
      fmt::join(request.words, " "), request.ranks,
      request.lab.empty() ? "" : fmt::format(", {} on each host, ports of {}", request.ranks_per_host, request.lab),
      format_bytes(static_cast<double>(rounds.ceiling().gradient_bytes)), request.rounds, request.steps,
      heads_of_steps());
  for (std::size_t i = 0; i < rounds.variants().size(); ++i)
    print_text("{}", line_of(rounds.variants()[i], rounds.steps_of(i), rounds.ceiling(), network_of(request)));
  const auto dense = bound_of({}, rounds.ceiling(), rounds.ceiling(), network_of(request));
  if (dense)
    print_text(
        "bound of dense gradients {:.1f} ms = max(step without exchange {:.1f}, its forward {:.1f} + ring {:.1f} + "
        "optimizer {:.1f}); of coded ones with the time of the bytes that were sent\n",
        1e3 * dense->seconds(), 1e3 * dense->alone_s, 1e3 * dense->forward_s, 1e3 * dense->wire_s,
        1e3 * dense->optimizer_s);
}

/// Throws Misuse where there is no program of the contenders, or Python lacks torch or this package.
void require_pytorch() {
  (void)contender_program();
  launch::JobOptions job;
  job.program = {python(), "-c", "import syncopate.torch"};
  std::string last;
  const auto end = launch::run_job(job, [&](const launch::job::Line& line) { last = line.text; });
  if (end.exit_code() == 0) return;
  throw Misuse(
      fmt::format("PyTorch contenders need torch and this package (pip install .) in the Python that SYNCOPATE_PYTHON "
                  "names, else python3; output of {}: {}",
                  job.program.front(), last));
}

/// Options that are compared stand before the "--"; after it they would be given twice.
void check(const StepRequest& request) {
  if (request.ranks_per_host > 1 && request.lab.empty()) throw Misuse("--ranks-per-host is for --lab");
  if (request.ranks % request.ranks_per_host != 0)
    throw Misuse(fmt::format("--ranks-per-host {} of {} ranks; allowed: divisors of their number",
                             request.ranks_per_host, request.ranks));
  if (request.words.empty())
    throw Misuse(
        "bench step: what to train is missing; allowed: options of `syncopate train` after --, as "
        "-- --model vgg11 --data FOLDER --batch 16");
  for (const char* option : {"--policy", "--codec", "--exchange"})
    for (const std::string& word : request.words)
      if (word == option || word.starts_with(std::string(option) + "="))
        throw Misuse(fmt::format("bench step compares {}; allowed: before the --, as a list", option));
  (void)variants_of(request);
  if (!request.contenders.empty()) require_pytorch();
}

std::vector<std::string> named(const char* option, std::vector<std::string> names) {
  if (names.empty()) throw Misuse(fmt::format("{} names none; allowed: names from `syncopate info`", option));
  return names;
}

}  // namespace

std::vector<StepVariant> variants_of(const StepRequest& request) {
  const std::vector<std::string> codecs = named("--codec", codecs_of(request.codecs));
  const bool compares_codecs = codecs != std::vector<std::string>{"none"};
  const std::string policies = compares_codecs ? "fusion" : "wfbp,fusion";
  std::vector<StepVariant> variants{{.exchange = "none"}};
  for (const std::string& policy : named("--policy", parts_of(request.policies.empty() ? policies : request.policies)))
    for (const std::string& codec : codecs)
      for (const std::string& exchange : named("--exchange", parts_of(request.exchanges)))
        if (exchange != "none") variants.push_back({.policy = policy, .codec = codec, .exchange = exchange});
  std::ranges::move(pytorch_variants(parts_of(request.contenders), codecs), std::back_inserter(variants));
  return variants;
}

void declare(CLI::App& app, StepRequest& request) {
  app.add_option("--ranks", request.ranks, "ranks to start")->check(between(1, 128))->capture_default_str();
  app.add_option("--lab", request.lab, "rate of an emulated host per rank, as 1gbit; without: loopback, and no bound")
      ->type_name("RATE")
      ->check(bit_rate());
  app.add_option("--ranks-per-host", request.ranks_per_host, "with --lab: number of ranks on each emulated host")
      ->check(between(1, 128))
      ->capture_default_str();
  app.add_option("--policy", request.policies, "policies, comma-separated (default wfbp,fusion; with --codec fusion)");
  app.add_option("--codec", request.codecs, "codecs with their parameters, comma-separated: none,fp16,topk:0.01")
      ->capture_default_str();
  app.add_option("--exchange", request.exchanges, "exchanges, comma-separated")->capture_default_str();
  app.add_option(
      "--contenders", request.contenders,
      "training by PyTorch, comma-separated: ddp-gloo, ddp-gloo-fp16, ddp-gloo-powersgd, "
      "ddp-syncopate, and with each codec ddp-syncopate-hook and syncopate-ddp (syncopate.torch's class, which chooses "
      "its buckets); with AdamW zero-gloo (ZeroRedundancyOptimizer) and syncopate-sharded (ShardedOptimizer); NAME:MIB "
      "gives DDP's buckets a size");
  app.add_option("--rounds", request.rounds, "turns of every variant")->check(between(1, 1000))->capture_default_str();
  app.add_option("--steps", request.steps, "measured steps per turn")
      ->check(between(1, 1000000))
      ->capture_default_str();
  app.prefix_command();
  app.footer(
      "Behind the options: those of `syncopate train`, as -- --model vgg11 --data FOLDER --batch 16. Ranks that do "
      "not\n"
      "communicate run in turn with all others.");
}

int run_step_benchmark(const StepRequest& request, const Session& session) {
  check(request);
  StepRounds rounds(request, session);
  if (const int code = rounds.run(); code != 0) return code;
  if (!session.json) {
    print_table(rounds, request);
    return 0;
  }
  for (std::size_t i = 0; i < rounds.variants().size(); ++i)
    print_row(row_of(rounds.variants()[i], rounds.steps_of(i), rounds.ceiling(), network_of(request)));
  return 0;
}

}  // namespace syncopate::tools::bench
