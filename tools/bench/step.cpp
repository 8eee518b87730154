// Step benchmark: the jobs it runs, the step rows it gathers, and the table of ratios to the bound.
#include "bench/step.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>

#include "arguments.hpp"
#include "bench/options.hpp"
#include "bench/rows.hpp"
#include "lab/lab.hpp"
#include "launch/launch.hpp"
#include "syncopate/error.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::bench {

namespace {

constexpr int kWarmup = 10;  // steps: caches, connections, what policies that weigh times measure
constexpr const char* kAlone = "(no exchange)";

/// What rank 0 said of its measured steps, all rounds together; seconds.
struct Steps {
  std::vector<double> step, forward, backward, wait, optimizer;
  std::vector<double> predicted;  ///< from what the same job's first steps took
  std::uint64_t wire_bytes = 0;
};

using Json = nlohmann::json;

void gather(Steps& steps, const std::string& line) {
  const Json row = Json::parse(line, nullptr, false);
  if (!row.is_object() || row.value("event", "") != "step" || row["step"].get<int>() <= kWarmup) return;
  steps.step.push_back(row["step_s"].get<double>());
  steps.forward.push_back(row["forward_s"].get<double>());
  steps.backward.push_back(row["backward_s"].get<double>());
  steps.wait.push_back(row["wait_s"].get<double>());
  steps.optimizer.push_back(row["optimizer_s"].get<double>());
  if (row.contains("predicted_s")) steps.predicted.push_back(row["predicted_s"].get<double>());
  steps.wire_bytes = row["wire_bytes"].get<std::uint64_t>();
}

class StepRounds final {
 public:
  StepRounds(const StepRequest& request, const Session& session)
      : request_(request), session_(session), variants_(parts_of(request.policies)) {
    variants_.insert(variants_.begin(), kAlone);
    if (request.lab.empty()) return;
    lab_.emplace(
        lab::Lab::start({.hosts = request.ranks, .rate = request.lab, .name = fmt::format("bench{}", getpid())}));
  }

  /// The exit code of the first job that failed, 0 if none did.
  int run() {
    for (int round = 0; round < request_.rounds; ++round) {
      std::vector<std::string> order = variants_;
      std::rotate(order.begin(), order.begin() + round % static_cast<int>(order.size()), order.end());
      for (const std::string& variant : order)
        if (const int code = run_one(variant); code != 0) return code;
    }
    return 0;
  }

  [[nodiscard]] const std::vector<std::string>& variants() const { return variants_; }
  [[nodiscard]] const Steps& steps_of(const std::string& variant) const { return steps_.at(variant); }
  [[nodiscard]] std::uint64_t gradient_bytes() const { return gradient_bytes_; }

 private:
  int run_one(const std::string& variant) {
    launch::JobOptions job;
    job.ranks = request_.ranks;
    job.lab = lab_ ? &*lab_ : nullptr;
    job.program = {session_.program, "train"};
    job.program.insert(job.program.end(), request_.words.begin(), request_.words.end());
    for (const std::string& word : {std::string("--json"), std::string("--evaluate-every"), std::string("0"),
                                    std::string("--steps"), fmt::format("{}", kWarmup + request_.steps)})
      job.program.push_back(word);
    const bool alone = variant == kAlone;
    job.program.insert(job.program.end(), {alone ? "--exchange" : "--policy", alone ? "none" : variant});
    std::string errors;
    const launch::job::End end = launch::run_job(job, [&](const launch::job::Line& line) {
      if (line.stream == launch::job::Stream::error) errors += fmt::format("{}\n", line.text);
      if (line.stream == launch::job::Stream::output && line.rank == 0) take(variant, std::string(line.text));
    });
    if (end.exit_code() != 0)
      session_.log.write(LogLevel::error, fmt::format("{}: {}\n{}", variant, end.description(), errors));
    return end.exit_code();
  }

  void take(const std::string& variant, const std::string& line) {
    gather(steps_[variant], line);
    const Json row = Json::parse(line, nullptr, false);
    if (row.is_object() && row.contains("gradient_bytes")) gradient_bytes_ = row["gradient_bytes"].get<std::uint64_t>();
  }

  const StepRequest& request_;
  const Session& session_;
  std::vector<std::string> variants_;
  std::optional<lab::Lab> lab_;
  std::map<std::string, Steps> steps_;
  std::uint64_t gradient_bytes_ = 0;
};

std::optional<StepBound> bound_of(const StepRounds& rounds, const StepRequest& request) {
  if (request.lab.empty() || request.lab == "none") return std::nullopt;
  const Steps& alone = rounds.steps_of(kAlone);
  const Series ring{.collective = "allreduce",
                    .algorithm = {},
                    .contender = {},
                    .transport = {},
                    .dtype = {},
                    .ranks = request.ranks,
                    .bytes = rounds.gradient_bytes(),
                    .correct = true,
                    .seconds = {},
                    .cpu_seconds = {}};
  return StepBound{.alone_s = median(alone.step),
                   .forward_s = median(alone.forward),
                   .optimizer_s = median(alone.optimizer),
                   .ring_s = bound_seconds(ring, parse_rate(request.lab)) * kEthernetHeaders};
}

/// How much longer steps took than was predicted.
double error_of(const Steps& steps) { return median(steps.step) / median(steps.predicted) - 1; }

Json row_of(const std::string& variant, const Steps& steps, const std::optional<StepBound>& bound) {
  Json row{{"benchmark", "step"},
           {"policy", variant == kAlone ? Json() : Json(variant)},
           {"step_seconds", timing(steps.step)},
           {"forward_seconds", median(steps.forward)},
           {"backward_seconds", median(steps.backward)},
           {"wait_seconds", median(steps.wait)},
           {"optimizer_seconds", median(steps.optimizer)},
           {"wire_bytes", steps.wire_bytes},
           {"bound_seconds", bound ? Json(bound->seconds()) : Json()}};
  row["predicted_seconds"] = steps.predicted.empty() ? Json() : Json(median(steps.predicted));
  row["prediction_error"] = steps.predicted.empty() ? Json() : Json(error_of(steps));
  row["ratio"] = bound ? Json(median(steps.step) / bound->seconds()) : Json();
  return row;
}

void print_table(const StepRounds& rounds, const StepRequest& request, const std::optional<StepBound>& bound) {
  fmt::print("step of {}, {} ranks{}, {} of gradients: {} rounds of {} steps, interleaved; rank 0, medians in ms\n",
             fmt::join(request.words, " "), request.ranks,
             request.lab.empty() ? "" : ", each on a host of its own at " + request.lab,
             format_bytes(static_cast<double>(rounds.gradient_bytes())), request.rounds, request.steps);
  fmt::print("{:<16}{:>24}{:>9}{:>10}{:>8}{:>11}{:>12}{:>10}{:>9}\n", "policy", "step (min..max)", "forward",
             "backward", "wait", "optimizer", "over bound", "predicted", "error");
  for (const std::string& variant : rounds.variants()) {
    const Steps& steps = rounds.steps_of(variant);
    const auto [low, high] = std::minmax_element(steps.step.begin(), steps.step.end());
    const bool told = !steps.predicted.empty();
    fmt::print("{:<16}{:>24}{:>9.1f}{:>10.1f}{:>8.1f}{:>11.1f}{:>12}{:>10}{:>9}\n", variant,
               fmt::format("{:.1f} ({:.1f}..{:.1f})", 1e3 * median(steps.step), 1e3 * *low, 1e3 * *high),
               1e3 * median(steps.forward), 1e3 * median(steps.backward), 1e3 * median(steps.wait),
               1e3 * median(steps.optimizer),
               bound ? fmt::format("x{:.3f}", median(steps.step) / bound->seconds()) : "",
               told ? fmt::format("{:.1f}", 1e3 * median(steps.predicted)) : "",
               told ? fmt::format("{:+.1f} %", 100 * error_of(steps)) : "");
  }
  if (bound)
    fmt::print(
        "bound {:.1f} ms = max(step without exchange {:.1f}, its forward {:.1f} + ring {:.1f} + optimizer {:.1f})\n",
        1e3 * bound->seconds(), 1e3 * bound->alone_s, 1e3 * bound->forward_s, 1e3 * bound->ring_s,
        1e3 * bound->optimizer_s);
}

}  // namespace

double StepBound::seconds() const { return std::max(alone_s, forward_s + ring_s + optimizer_s); }

void declare(CLI::App& app, StepRequest& request) {
  app.add_option("--ranks", request.ranks, "ranks to start")->check(between(1, 128))->capture_default_str();
  app.add_option("--lab", request.lab, "rate of an emulated host per rank, as 1gbit; without: loopback, and no bound");
  app.add_option("--policy", request.policies, "policies, comma-separated")->capture_default_str();
  app.add_option("--rounds", request.rounds, "turns of every variant")->check(between(1, 1000))->capture_default_str();
  app.add_option("--steps", request.steps, "measured steps per turn")
      ->check(between(1, 1000000))
      ->capture_default_str();
  app.prefix_command();
  app.footer("Behind the options: those of `syncopate train`, as -- --model vgg11 --data FOLDER --batch 16");
}

int run_step_benchmark(const StepRequest& request, const Session& session) {
  if (request.words.empty())
    throw Misuse(
        "bench step: what to train is missing; allowed: options of `syncopate train` behind --, as "
        "-- --model vgg11 --data FOLDER --batch 16");
  StepRounds rounds(request, session);
  if (const int code = rounds.run(); code != 0) return code;
  const std::optional<StepBound> bound = bound_of(rounds, request);
  if (!session.json) {
    print_table(rounds, request, bound);
    return 0;
  }
  for (const std::string& variant : rounds.variants()) print_row(row_of(variant, rounds.steps_of(variant), bound));
  return 0;
}

}  // namespace syncopate::tools::bench
