// `syncopate run`: starts N ranks of a program, on this machine, on a lab's hosts, or on other hosts by ssh.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <optional>

#include "arguments.hpp"
#include "command.hpp"
#include "job_file.hpp"
#include "launch/launch.hpp"
#include "launch/screen.hpp"
#include "launch/server_options.hpp"
#include "launch/sibling.hpp"
#include "syncopate/error.hpp"
#include "syncopate/group.hpp"
#include "syncopate/tooling/environment.hpp"
#include "syncopate/tooling/json.hpp"

namespace syncopate::tools::command {

namespace {

struct Words {
  launch::JobOptions job;
  std::optional<int> ranks;
  std::optional<std::string> rate, hosts;  ///< as given
  std::optional<double> timeout_s;
  std::vector<std::string> settings;  ///< K=V or K
};

void take_setting(launch::JobOptions& job, const std::string& word) {
  const auto equals = word.find('=');
  if (equals == 0 || word.empty()) throw Misuse(fmt::format("--env '{}'; allowed: NAME or NAME=VALUE", word));
  if (equals != std::string::npos) {
    job.environment[word.substr(0, equals)] = word.substr(equals + 1);
  } else if (const char* value = std::getenv(word.c_str())) {
    job.environment[word] = value;
  }
  const std::string name = word.substr(0, equals);
  if (const auto set = job.environment.find(name); set != job.environment.end()) require_allowed(name, set->second);
}

launch::JobOptions job_of(const Session& session, const Words& words, std::vector<std::string> program) {
  launch::JobOptions job = words.job;
  job.program = std::move(program);
  if (!words.rate && job.ranks_per_host != 1)
    throw Misuse("--ranks-per-host is for --lab; for real hosts write --hosts a:2,b:2");
  if (words.hosts && words.rate) throw Misuse("--lab and --hosts exclude each other: emulated hosts, or real ones");
  int slots = 1;
  if (!session.log_level.empty()) job.environment["SYNCOPATE_LOG"] = session.log_level;
  if (words.hosts) {
    job.hosts = launch::parse_places(*words.hosts);
    slots = 0;
    for (const launch::Place& place : job.hosts) slots += place.slots;
  }
  job.ranks = words.ranks.value_or(slots);
  if (job.ranks < 1 || job.ranks > 1024) throw Misuse(fmt::format("-n {}; allowed: 1 to 1024", job.ranks));
  if (job.program.empty()) throw Misuse("no program given: syncopate run -n N [OPTIONS] -- PROGRAM ARGS…");
  if (job.hosts.empty()) (void)launch::process::resolve_program(job.program[0]);
  for (const std::string& word : words.settings) take_setting(job, word);
  if (job.servers > 0 && !job.own_servers) job.server_program = launch::path_of(launch::kServer, session);
  if (words.timeout_s) job.environment["SYNCOPATE_TIMEOUT_MS"] = fmt::format("{:.0f}", *words.timeout_s * 1e3);
  return job;
}

/// If no lab is possible the ranks run on loopback, with a warning, because measurements then mean something else.
std::optional<lab::Lab> lab_for(const Words& words, const launch::JobOptions& job) {
  if (!words.rate) return std::nullopt;
  try {
    return lab::Lab::start({.hosts = launch::lab_hosts(job.ranks, job.ranks_per_host),
                            .rate = *words.rate,
                            .name = fmt::format("run-{}", getpid())});
  } catch (const SystemFailure& why) {
    print_error(
        "syncopate run: {}\nsyncopate run: continuing WITHOUT emulated hosts: all ranks on loopback, at "
        "memory speed\n",
        why.what());
    return std::nullopt;
  }
}

int run_ranks(const Session& session, const Words& words, const std::vector<std::string>& program) {
  launch::JobOptions job = job_of(session, words, program);
  const std::optional<lab::Lab> emulated = lab_for(words, job);
  job.lab = emulated ? &*emulated : nullptr;
  if (emulated) job.supervise.files.push_back(emulated->state_file());
  launch::job::End end;
  {
    launch::Screen screen(session.json);
    job.supervise.progress = screen.is_terminal();
    end = launch::run_job(job, [&screen](const launch::job::Line& line) { screen.show(line); });
  }
  if (end.first_failure < 0 && !end.interrupted) return 0;
  // After a signal the output may not be read.
  const Ready ready = end.forwarded_signal != 0 ? ready_within(job.supervise.reader) : Ready();
  write_error(fmt::format("syncopate run: {}\n", end.description()), ready);
  nlohmann::json row{{"error", end.description()}, {"kind", end.interrupted ? "Interrupted" : "RankFailed"}};
  if (!end.interrupted) row["rank"] = end.first_failure;
  row["code"] = end.exit_code();
  if (session.json) write_output(text_of_json(row) + "\n", ready);
  return end.exit_code();
}

void define(CLI::App& app, Session& session) {
  const auto words = std::make_shared<Words>();
  app.add_option("-n,--ranks", words->ranks, "How many ranks, 1 to 1024 (default: 1, or as many as --hosts takes)")
      ->check(between(1, 1024));
  app.add_option("--lab", words->rate, "Ranks on emulated hosts whose ports carry this rate: 1gbit, 200mbit, none…")
      ->type_name("RATE")
      ->check(bit_rate());
  app.add_option("--ranks-per-host", words->job.ranks_per_host, "With --lab: number of ranks on each emulated host")
      ->check(between(1, 1024))
      ->capture_default_str();
  app.add_option("--hosts", words->hosts, "Start them by ssh: a,b:2 is one rank on a and two on b")->type_name("LIST");
  add_job_file(app, "run", words->job.config);
  launch::add_server_options(app, words->job);
  app.add_option("--transport", words->job.transport, "SYNCOPATE_TRANSPORT for the ranks")
      ->type_name("T")
      ->check(one_of("transport", names_of(kTransportChoices)));
  app.add_option("--tls", words->job.tls, "SYNCOPATE_TLS for the ranks: encrypt their connections")
      ->type_name("T")
      ->check(one_of("tls", names_of(kTlsChoices)));
  app.add_option("--interface", words->job.interface, "Interface or address the ranks use (default: what fits)");
  app.add_option("--rendezvous", words->job.rendezvous, "Where ranks meet, tcp://HOST:PORT (default: a free port)");
  app.add_option("--timeout", words->timeout_s, "Bound of every collective, in seconds")
      ->type_name("SECONDS")
      ->check(between(0.001, 1e6));
  app.add_option("--env", words->settings, "Set NAME=VALUE, or pass NAME on, for every rank; repeatable")
      ->type_name("NAME[=VALUE]")
      ->allow_extra_args(false);
  app.prefix_command();
  app.footer(
      "PROGRAM ARGS… follow the options. Ranks find SYNCOPATE_RANK, _SIZE, _LOCAL_RANK, _RENDEZVOUS and _SECRET_FILE\n"
      "in their environment; OMP_NUM_THREADS and everything else is left as it is. After the first failure the others\n"
      "have 5 s to end with their own error, then SIGTERM, then SIGKILL; the exit code is the first failure's\n"
      "(128 + signal). SIGINT, SIGTERM and SIGHUP are forwarded; a second SIGINT kills.");
  app.callback([&app, &session, words] {
    session.holds_signals = true;
    session.action = [&session, words, argv = program_behind(app)] { return run_ranks(session, *words, argv); };
  });
}

}  // namespace

extern constinit const Command run{
    .name = "run",
    .summary = "Start N ranks of a program, here, on emulated hosts, or by ssh",
    .define = define,
};

}  // namespace syncopate::tools::command
