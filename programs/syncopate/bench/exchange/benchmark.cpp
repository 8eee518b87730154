// Exchange benchmark: the lab, the jobs in it, and rows with the laws of their bytes.
#include "bench/exchange/benchmark.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "arguments.hpp"
#include "bench/exchange/rows.hpp"
#include "bench/options.hpp"
#include "lab/lab.hpp"
#include "launch/launch.hpp"
#include "progress.hpp"
#include "syncopate/error.hpp"
#include "syncopate/plan.hpp"
#include "syncopate/tooling/names.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::bench {

namespace {

constexpr std::string_view kCodecs[] = {"topk", "mstopk"};  // select as many elements as the density states

double density_of(const std::string& text) {
  double density = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), density);
  if (error != std::errc{} || end != text.data() + text.size() || !(density > 0 && density <= 1))
    throw Misuse(fmt::format("--density '{}'; allowed: numbers above 0, at most 1", text));
  return density;
}

std::vector<std::string> worker_words(const ExchangeRequest& request, const std::string& program) {
  return {program,
          "bench",
          "exchanger",
          fmt::format("--hosts={}", request.hosts),
          fmt::format("--ranks-per-host={}", request.ranks_per_host),
          "--lab=" + request.lab,
          "--elements=" + request.elements,
          "--algorithm=" + request.algorithms,
          "--codec=" + request.codecs,
          "--density=" + request.densities,
          fmt::format("--steps={}", request.steps)};
}

/// One job: every subject once, on ports as they are shaped now. Its exit code.
int run_one(const ExchangeRequest& request, const Session& session, const lab::Lab& lab,
            const std::function<void(const std::string&)>& take) {
  launch::JobOptions job;
  job.ranks = request.hosts * request.ranks_per_host;
  job.ranks_per_host = request.ranks_per_host;
  job.lab = &lab;
  job.program = worker_words(request, session.program);
  std::string errors;
  const launch::job::End end = launch::run_job(job, [&](const launch::job::Line& line) {
    if (line.stream == launch::job::Stream::error) errors += fmt::format("{}\n", line.text);
    if (line.stream == launch::job::Stream::output) take(std::string(line.text));
  });
  if (end.exit_code() != 0) session.log.write(LogLevel::error, fmt::format("{}\n{}", end.description(), errors));
  return end.exit_code();
}

int measure(const ExchangeRequest& request, const Session& session, ExchangeRows& rows) {
  lab::Lab lab =
      lab::Lab::start({.hosts = request.hosts, .rate = request.lab, .name = fmt::format("bench{}", getpid())});
  const Progress progress(session, "bench exchange");
  for (int round = 0; round < request.rounds; ++round)
    for (const bool shaped : {false, true}) {
      const std::string where =
          fmt::format("round {}/{}, ports {}", round + 1, request.rounds, shaped ? "at " + request.lab : "not shaped");
      progress.show(where);
      lab.reshape(shaped ? request.lab : "none");
      std::size_t count = 0;
      const auto take = [&](const std::string& line) {
        if (rows.take(line, shaped)) progress.show(fmt::format("{}, {} exchanges", where, ++count));
      };
      if (const int code = run_one(request, session, lab, take); code != 0) return code;
    }
  return 0;
}

}  // namespace

void declare(CLI::App& app, ExchangeRequest& request) {
  app.add_option("--hosts", request.hosts, "emulated hosts")->check(between(2, 64))->capture_default_str();
  app.add_option("--ranks-per-host", request.ranks_per_host, "ranks on each, which share memory and the port")
      ->check(between(1, 64))
      ->capture_default_str();
  app.add_option("--lab", request.lab, "rate of a host's port, as 200mbit")
      ->type_name("RATE")
      ->check(bit_rate())
      ->required();
  app.add_option("--elements", request.elements, "of the gradient: 1000, 25M, 16Mi")
      ->type_name("COUNT")
      ->check(element_count())
      ->capture_default_str();
  app.add_option("--algorithm", request.algorithms,
                 "of the dense all-reduces, comma-separated, as ring,torus_2d,double_binary_tree")
      ->capture_default_str();
  app.add_option("--codec", request.codecs, "topk, mstopk")->capture_default_str();
  app.add_option("--density", request.densities, "densities of the codecs, comma-separated")->capture_default_str();
  app.add_option("--rounds", request.rounds, "turns of every exchange, each with ports that are not shaped and shaped")
      ->check(between(1, 1000))
      ->capture_default_str();
  app.add_option("--steps", request.steps, "timed steps per turn")->check(between(1, 100000))->capture_default_str();
}

ExchangePlace place_of(const ExchangeRequest& request) {
  const ExchangePlace place{
      .hosts = request.hosts, .ranks_per_host = request.ranks_per_host, .elements = parse_count(request.elements)};
  if (parse_rate(request.lab) == 0) throw Misuse("--lab none: nothing to compare with; allowed: a rate, as 200mbit");
  if (place.ranks() > 128)
    throw Misuse(fmt::format("{} hosts of {} ranks; allowed: at most 128 ranks", place.hosts, place.ranks_per_host));
  if (place.elements < static_cast<std::size_t>(place.ranks()))
    throw Misuse(
        fmt::format("--elements {}; allowed: at least one for each of {} ranks", request.elements, place.ranks()));
  return place;
}

std::vector<ExchangeSubject> subjects_of(const ExchangeRequest& request) {
  std::vector<ExchangeSubject> subjects;
  for (const std::string& algorithm : parts_of(request.algorithms)) {
    // Throws Misuse for what does not exist or offers no all-reduce.
    (void)plan_collective({.algorithm = algorithm, .ranks = request.hosts * request.ranks_per_host});
    subjects.push_back({"allreduce", "none", algorithm});
  }
  const std::vector<std::string> densities = parts_of(request.densities), codecs = parts_of(request.codecs);
  if (codecs.empty()) throw Misuse("--codec names none; allowed: topk, mstopk");
  for (const std::string& codec : codecs)
    if (std::ranges::find(kCodecs, codec) == std::end(kCodecs)) throw Misuse(unknown_name("codec", codec, kCodecs));
  if (densities.empty()) throw Misuse("--density names none; allowed: numbers above 0, at most 1");
  for (const std::string& text : densities)
    for (const std::string& codec : codecs)
      for (const char* exchange : {"allreduce", "hierarchical"})
        subjects.push_back({exchange, codec + ":" + text, "ring", density_of(text)});
  return subjects;
}

int run_exchange_benchmark(const ExchangeRequest& request, const Session& session) {
  ExchangeRows rows(subjects_of(request), place_of(request), parse_rate(request.lab));
  if (const int code = measure(request, session, rows); code != 0) return code;
  if (session.json)
    for (const nlohmann::json& row : rows.json()) print_row(row);
  else
    print_text("{} elements, {} hosts of {} ranks, ports of {}: {} rounds of {} steps, slowest rank, medians\n{}",
               place_of(request).elements, request.hosts, request.ranks_per_host, request.lab, request.rounds,
               request.steps, rows.table());
  return rows.all_correct() ? 0 : 1;
}

}  // namespace syncopate::tools::bench
