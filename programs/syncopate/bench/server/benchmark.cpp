// Server benchmark: the lab, the jobs in it with their servers, and the rows of all runs.
#include "bench/server/benchmark.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "arguments.hpp"
#include "bench/options.hpp"
#include "bench/server/rows.hpp"
#include "lab/lab.hpp"
#include "launch/launch.hpp"
#include "launch/runtime_folder.hpp"
#include "launch/sibling.hpp"
#include "progress.hpp"
#include "syncopate/error.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::bench {

namespace {

constexpr char kOurs[] = "syncopate", kReplicated[] = "replicas", kBare[] = "grpc";
constexpr launch::Sibling kStream{"contender_grpc", "gRPC; run scripts/contenders, and build again"};
constexpr int kUntimed = 2;  // rounds of each run

std::vector<std::uint64_t> sizes_of(const ServerRequest& request) {
  std::vector<std::uint64_t> sizes;
  const int parts = std::max(request.tables, request.servers);
  for (const std::string& text : parts_of(request.bytes)) {
    sizes.push_back(parse_bytes(text));
    if (sizes.back() % sizeof(float) != 0 || sizes.back() < sizeof(float) * static_cast<std::uint64_t>(parts))
      throw Misuse(
          fmt::format("--bytes {}; allowed: multiples of 4 bytes, at least one element for each of {} tables and "
                      "{} servers",
                      text, request.tables, request.servers));
  }
  if (sizes.empty()) throw Misuse("--bytes is empty; give sizes such as 1MiB,100MiB");
  return sizes;
}

/// One after the other: each run is a job of its own, and another contender begins each round.
class ServerRounds final {
 public:
  ServerRounds(const ServerRequest& request, const Session& session, ServerRows& rows)
      : request_(request),
        session_(session),
        rows_(rows),
        sizes_(sizes_of(request)),
        server_(launch::path_of(launch::kServer, session)),
        worker_(launch::path_of(launch::kBenchServer, session)),
        progress_(session, "bench server") {
    contenders_ = {kOurs};
    if (request.replicas > 0) contenders_.emplace_back(kReplicated);
    if (request.contenders != "none") add_stream();
    if (!request.lab.empty())
      lab_.emplace(
          lab::Lab::start({.hosts = request.workers, .rate = request.lab, .name = fmt::format("bench{}", getpid())}));
  }

  /// The exit code of the first job that failed, 0 if none did.
  int run() {
    for (int round = 0; round < request_.rounds; ++round) {
      for (const std::uint64_t bytes : sizes_)
        for (const std::string& contender : contenders_) {
          progress_.show(fmt::format("round {}/{}, {}, {}", round + 1, request_.rounds, contender, bytes));
          if (const int code = run_one(contender, bytes); code != 0) return code;
        }
      std::ranges::rotate(contenders_, contenders_.begin() + 1);
    }
    progress_.clear();
    return 0;
  }

 private:
  /// If it was not built, "all" leaves it out and logs that.
  void add_stream() try {
    stream_ = launch::path_of(kStream, session_);
    contenders_.emplace_back(kBare);
  } catch (const Misuse& error) {
    if (request_.contenders != "all") throw;
    session_.log.write(LogLevel::warning, fmt::format("without contender grpc: {}", error.what()));
  }

  int run_one(const std::string& contender, std::uint64_t bytes) {
    const std::string store = fmt::format("{}/bench-{}-{}", launch::runtime_folder(), getpid(), ++runs_);
    launch::JobOptions job;
    job.ranks = request_.workers;
    job.lab = lab_ ? &*lab_ : nullptr;
    if (contender != kBare) {
      job.program = our_words(bytes, contender);
      job.servers = request_.servers;
      job.replicas = contender == kReplicated ? request_.replicas : 0;
      job.server_program = server_;
    } else {
      job.program = stream_words(bytes, store);
      std::filesystem::create_directory(store);
    }
    std::string errors;
    const launch::job::End end = launch::run_job(job, [&](const launch::job::Line& line) {
      if (line.stream == launch::job::Stream::error) errors += fmt::format("{}\n", line.text);
      if (line.stream == launch::job::Stream::output) rows_.take(std::string(line.text));
    });
    std::error_code ignored;
    std::filesystem::remove_all(store, ignored);
    if (end.exit_code() == 0) return 0;
    progress_.clear();
    session_.log.write(LogLevel::error, fmt::format("{}: {}\n{}", contender, end.description(), errors));
    return end.exit_code();
  }

  [[nodiscard]] std::vector<std::string> our_words(std::uint64_t bytes, const std::string& contender) const {
    return {worker_,
            "measure",
            fmt::format("--contender={}", contender),
            fmt::format("--bytes={}", bytes),
            fmt::format("--tables={}", request_.tables),
            fmt::format("--untimed={}", kUntimed),
            fmt::format("--timed={}", request_.steps)};
  }

  [[nodiscard]] std::vector<std::string> stream_words(std::uint64_t bytes, const std::string& store) const {
    std::vector<std::string> words{stream_, fmt::format("bytes={}", bytes), fmt::format("servers={}", request_.servers),
                                   fmt::format("untimed={}", kUntimed), fmt::format("timed={}", request_.steps)};
    std::vector<std::string> hosts;
    for (int host = 0; lab_ && host < request_.workers; ++host) hosts.push_back(lab_->address(host));
    words.push_back(lab_ ? fmt::format("hosts={}", fmt::join(hosts, ",")) : "store=" + store);
    return words;
  }

  const ServerRequest& request_;
  const Session& session_;
  ServerRows& rows_;
  const std::vector<std::uint64_t> sizes_;
  const std::string server_, worker_;  ///< paths of the programs
  std::string stream_;                 ///< path of the contender; empty: without it
  Progress progress_;
  std::vector<std::string> contenders_;
  std::optional<lab::Lab> lab_;
  int runs_ = 0;
};

}  // namespace

void declare(CLI::App& app, ServerRequest& request) {
  app.add_option("--workers", request.workers, "workers to start")->check(between(1, 64))->capture_default_str();
  app.add_option("--servers", request.servers, "servers to start")->check(between(1, 64))->capture_default_str();
  app.add_option("--replicas", request.replicas, "1: also measure servers with a replica on the next one")
      ->check(between(0, 1))
      ->capture_default_str();
  app.add_option("--bytes", request.bytes, "sizes of the vector that is pushed and pulled")
      ->type_name("BYTES")
      ->check(list_of(byte_size()))
      ->capture_default_str();
  app.add_option("--tables", request.tables, "ours: equal tables that the vector is divided into")
      ->check(between(1, 100'000))
      ->capture_default_str();
  app.add_option("--lab", request.lab,
                 "an emulated host for each worker with a port of this rate (1gbit); servers on them in turns")
      ->type_name("RATE")
      ->check(bit_rate());
  app.add_option(
         "--contenders", request.contenders,
         "grpc: a bare stream of the same bytes; all; or none; replay: all, or some of alone,traditional,wait_free,"
         "front_first,ssp,codec,combined")
      ->capture_default_str();
  app.add_option("--rounds", request.rounds, "runs of every contender, interleaved")
      ->check(between(1, 1000))
      ->capture_default_str();
  app.add_option("--steps", request.steps, "timed rounds of push and pull in each run; replay: blocks of 6 steps")
      ->check(between(1, 10'000))
      ->capture_default_str();
  app.add_option("--replay", request.replay,
                 "thesis: instead of push and pull, steps of its models with computing emulated by sleeping");
  app.add_option("--models", request.models, "replay: resnet110,googlenet,inception_v4_slim")->capture_default_str();
  app.add_option("--placement", request.placement, "replay: placement of tables on servers")->capture_default_str();
  app.add_option("--dilation", request.dilation, "replay: factor by which computing takes longer, for a slower --lab")
      ->check(above_zero())
      ->capture_default_str();
}

int run_server_benchmark(const ServerRequest& request, const Session& session) {
  ServerRows rows({.workers = request.workers,
                   .servers = request.servers,
                   .bits_per_s = request.lab.empty() ? 0 : parse_rate(request.lab)});
  if (const int code = ServerRounds(request, session, rows).run(); code != 0) return code;
  if (rows.empty()) throw SystemFailure("no contender finished a single row");
  if (session.json)
    for (const nlohmann::json& row : rows.json()) print_row(row);
  else
    print_text("push and pull, {} workers, {} servers{}: {} interleaved runs of {} rounds; slowest worker\n{}",
               request.workers, request.servers,
               request.lab.empty() ? "" : fmt::format(", a host for each worker, ports of {}", request.lab),
               request.rounds, request.steps, rows.table());
  return rows.all_correct() ? 0 : 1;
}

}  // namespace syncopate::tools::bench
