// syncopate-server: runs one server of a job, or one of its subcommands.
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "arguments.hpp"
#include "job_file.hpp"
#include "syncopate/error.hpp"
#include "syncopate/server.hpp"
#include "syncopate/tooling/json.hpp"
#include "syncopate/tooling/standard_streams.hpp"
#include "syncopate/tooling/units.hpp"
#include "syncopate/version.hpp"

namespace {

using namespace syncopate;

struct Words {
  ServerOptions server;
  std::function<void()> instead;  ///< what a subcommand does instead of serving
  std::string memory = "0", tls, log_level, config;
  double patience_s = 10;
  bool drain = false, json = false;
};

void print_row(const nlohmann::json& row) { write_output(text_of_json(row) + "\n"); }

nlohmann::json row_of(const ServerStatus& status) {
  return {{"workers", status.workers},
          {"connected", status.connected},
          {"finished", status.finished},
          {"kept_bytes", status.kept_bytes},
          {"replica_bytes", status.replica_bytes},
          {"keeps_replica", status.keeps_replica},
          {"serves", status.serves},
          {"received_bytes", status.received_bytes},
          {"sent_bytes", status.sent_bytes},
          {"processor_seconds", status.processor_seconds}};
}

std::string text_of(const ServerStatus& status) {
  const auto size = [](std::uint64_t bytes) { return format_bytes(static_cast<double>(bytes)); };
  return fmt::format("{} of {} workers connected, {} finished, {} kept{}, {} received, {} sent", status.connected,
                     status.workers, status.finished, size(status.kept_bytes),
                     status.keeps_replica ? fmt::format(" and {} of another server", size(status.replica_bytes)) : "",
                     size(status.received_bytes), size(status.sent_bytes));
}

void define_status(CLI::App& app, Words& words) {
  CLI::App* status = app.add_subcommand("status", "Print the status of the server at an address");
  const auto address = std::make_shared<std::string>();
  status->add_option("ADDRESS", *address, "HOST:PORT or @NAME")->required();
  status->callback([&words, address] {
    words.instead = [&words, address] {
      const ServerStatus status = status_of(*address, words.server.access);
      if (words.json) return print_row(row_of(status));
      write_output(fmt::format("{}\n", text_of(status)));
    };
  });
}

void define(CLI::App& app, Words& words) {
  app.name("syncopate-server");
  app.set_version_flag("--version", std::string(version()));
  app.add_option(
      "--address", words.server.addresses,
      "Address to listen at: HOST:PORT (numeric host; port 0: any free port), or @NAME on this host; repeatable");
  app.add_option("--index", words.server.index, "Index of this server in the job, from 0")
      ->check(tools::at_least(std::size_t{0}))
      ->capture_default_str();
  app.add_option("--memory", words.memory,
                 "Memory limit of what it keeps, such as 8GiB (default: three quarters of the machine's)")
      ->type_name("BYTES")
      ->check(tools::byte_size());
  app.add_option("--patience", words.patience_s,
                 "Seconds after which the server drops a lost or silent worker and serves the others on")
      ->capture_default_str()
      ->check(tools::between(0.001, 1e6));
  app.add_option("--replicas", words.server.replicas,
                 "1: the next server keeps a replica of this one, from which a new process can replace it")
      ->capture_default_str()
      ->check(tools::between(0, 1));
  app.add_option(
         "--servers", words.server.servers,
         "With --replicas: the addresses of all servers, in the order of their indices (also: SYNCOPATE_SERVERS)")
      ->delimiter(',')
      ->envname("SYNCOPATE_SERVERS");
  app.add_option(
      "--snapshots", words.server.snapshots,
      "Folder for snapshots, the same for all servers; a start resumes from the newest that all servers have");
  app.add_option("--snapshot-every", words.server.snapshot_every, "Steps between snapshots")
      ->check(tools::at_least(std::int64_t{1}))
      ->capture_default_str();
  app.add_flag("--drain", words.drain, "End when every worker of the job has ended");
  JobAccess& access = words.server.access;
  app.add_option("--job", access.job, "Name of the job, the same in all its processes (also: SYNCOPATE_JOB)");
  app.add_option("--secret-file", access.secret_file, "The job's secret (also: SYNCOPATE_SECRET_FILE)");
  words.tls = name_of(access.tls);
  app.add_option("--tls", words.tls,
                 "on, off, or auto, which encrypts connections to public addresses (also: SYNCOPATE_TLS)")
      ->check(tools::one_of("tls", {"auto", "on", "off"}))
      ->capture_default_str();
  app.add_option("--log-level", words.log_level, "error, warning, info, debug or off (also: SYNCOPATE_LOG)");
  app.add_flag("--json", words.json, "One JSON object a line on stdout; logs on stderr");
  tools::add_job_file(app, "server", words.config);
  app.fallthrough();
  define_status(app, words);
}

/// One thread waits for signals; they are blocked before any other thread starts, so every thread inherits the mask.
sigset_t blocked_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

/// Handles signals while the server starts. Nothing needs an orderly end yet, and a start may block forever (a folder
/// on a host that does not answer), so a signal ends the process at once, with its default effect.
class StartUp final {
 public:
  explicit StartUp(const sigset_t& signals)
      : thread_([signals](const std::stop_token& stop) { watch(signals, stop); }) {}

 private:
  static void watch(const sigset_t& signals, const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const timespec turn{0, 10'000'000};
      const int number = sigtimedwait(&signals, nullptr, &turn);
      if (number <= 0) continue;
      std::signal(number, SIG_DFL);
      pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
      ::raise(number);
    }
  }
  std::jthread thread_;
};

std::unique_ptr<Server> started(const ServerOptions& options, const sigset_t& signals) {
  const StartUp start_up(signals);
  return Server::start(options);
}

void say(const char* event, const Words& words, const Server& server) {
  const ServerStatus status = server.status();
  if (words.json) {
    nlohmann::json row{{"event", event}, {"server", words.server.index}, {"addresses", server.addresses()}};
    row.update(row_of(status));
    return print_row(row);
  }
  if (std::string_view(event) == "begin")
    write_output(fmt::format("server {} serves at {}\n", words.server.index, fmt::join(server.addresses(), ", ")));
  else if (status.workers > 0 && status.finished == status.workers)
    write_output(fmt::format("server {} done: all {} workers finished\n", words.server.index, status.workers));
  else
    write_output(fmt::format("server {} done: {}\n", words.server.index, text_of(status)));
}

void run_server(Words words) {
  if (words.server.addresses.empty())
    throw Misuse("--address is required: the address to listen at (--help lists the options)");
  const sigset_t signals = blocked_signals();
  words.server.memory_bytes = parse_bytes(words.memory);
  words.server.patience = std::chrono::milliseconds(static_cast<long>(words.patience_s * 1e3));
  if (!words.log_level.empty()) words.server.log.level = log_level_named(words.log_level);
  const std::unique_ptr<Server> server = started(words.server, signals);
  say("begin", words, *server);
  for (;;) {
    const timespec turn{0, 100'000'000};
    if (sigtimedwait(&signals, nullptr, &turn) > 0) break;
    if (server->wait_for_end(std::chrono::milliseconds(0)) && words.drain) break;
  }
  say("end", words, *server);
}

int fail(const Error& error, bool json) {
  write_error(fmt::format("syncopate server: {}\n", error.what()));
  if (json) print_row({{"error", error.what()}, {"kind", name_of(error.kind())}});
  return exit_code_of(error.kind());
}

}  // namespace

int main(int argc, char** argv) {
  hold_standard_descriptors();
  Words words;
  try {
    words.server.access = access_from_environment();
    CLI::App app("One server of a job; `syncopate run --servers K` starts K of them with their workers.");
    define(app, words);
    try {
      app.parse(argc, argv);
    } catch (const CLI::Success& asked) {
      std::ostringstream text;
      app.exit(asked, text);
      write_output(text.str());
      finish_output();
      return 0;
    } catch (const CLI::ParseError& error) {
      throw Misuse(fmt::format("{} (--help lists the options)", tools::refusal_of(app, error)));
    }
    words.server.access.tls = tls_named(words.tls);
    words.instead ? words.instead() : run_server(words);
    finish_output();
    return 0;
  } catch (const Error& error) {
    return fail(error, words.json);
  } catch (const std::exception& error) {
    return fail(SystemFailure(error.what()), words.json);
  }
}
