// `syncopate bench`: measures collectives, ours and other libraries', in one interleaved run with checked answers.
#include <memory>

#include "bench/codec/benchmark.hpp"
#include "bench/controller.hpp"
#include "bench/exchange/benchmark.hpp"
#include "bench/replay.hpp"
#include "bench/server/benchmark.hpp"
#include "bench/step/benchmark.hpp"
#include "bench/worker.hpp"
#include "command.hpp"

namespace syncopate::tools::command {
namespace {

void add_collective(CLI::App& app, Session& session, Collective collective, const char* summary) {
  const auto request = std::make_shared<bench::Request>();
  request->collective = name_of(collective);
  CLI::App& sub = *app.add_subcommand(request->collective, summary);
  sub.fallthrough();  // --json and --log-level may stand behind it
  bench::declare(sub, *request);
  sub.callback([request, &session] {
    session.action = [request, &session] { return bench::run_benchmark(*request, session); };
  });
}

void add_codec(CLI::App& app, Session& session) {
  const auto request = std::make_shared<bench::CodecRequest>();
  CLI::App& sub = *app.add_subcommand("codec", "Encoding and decoding on one core, in units of one read of the input");
  sub.add_flag("--json", session.json, "One row per codec and contender, for programs");
  bench::declare(sub, *request);
  sub.callback([request, &session] {
    session.action = [request, &session] { return bench::run_codec_benchmark(*request, session); };
  });
}

void add_exchange(CLI::App& app, Session& session) {
  const auto request = std::make_shared<bench::ExchangeRequest>();
  CLI::App& sub = *app.add_subcommand("exchange", "Flat and hierarchical top-k and dense all-reduces, by host");
  sub.add_flag("--json", session.json, "One row per exchange, for programs");
  bench::declare(sub, *request);
  sub.callback([request, &session] {
    session.action = [request, &session] { return bench::run_exchange_benchmark(*request, session); };
  });
}

/// Internal: `bench exchange` starts this subcommand as its ranks.
void add_exchanger(CLI::App& app, Session& session) {
  const auto request = std::make_shared<bench::ExchangeRequest>();
  CLI::App& sub = *app.add_subcommand("exchanger", "One rank of an exchange");
  sub.group("");
  bench::declare(sub, *request);
  sub.callback([request, &session] { session.action = [request] { return bench::run_exchanger(*request); }; });
}

void add_server(CLI::App& app, Session& session) {
  const auto request = std::make_shared<bench::ServerRequest>();
  CLI::App& sub =
      *app.add_subcommand("server", "Push and pull of the parameter server, compared with a bare gRPC stream");
  sub.add_flag("--json", session.json, "One row per contender and size, for programs");
  bench::declare(sub, *request);
  sub.callback([request, &sub, &session] {
    bench::require_replayed(sub, *request);
    session.action = [request, &session] {
      return request->replay.empty() ? bench::run_server_benchmark(*request, session)
                                     : bench::run_server_replay(*request, session);
    };
  });
}

void add_step(CLI::App& app, Session& session) {
  const auto request = std::make_shared<bench::StepRequest>();
  CLI::App& sub = *app.add_subcommand("step", "Training steps by policy, compared with the bound of the network");
  sub.add_flag("--json", session.json, "One row per policy, for programs");
  bench::declare(sub, *request);
  sub.callback([request, &sub, &session] {
    request->words = words_behind(sub);
    session.action = [request, &session] { return bench::run_step_benchmark(*request, session); };
  });
}

void add_replay(CLI::App& app, Session& session) {
  const auto request = std::make_shared<bench::ReplayRequest>();
  CLI::App& sub =
      *app.add_subcommand("replay", "Steps of a profile by policy in a lab, computing replaced by sleeping");
  sub.add_flag("--json", session.json, "One row per policy, for programs");
  bench::declare(sub, *request);
  sub.callback([request, &session] {
    session.action = [request, &session] { return bench::run_replay_benchmark(*request, session); };
  });
}

/// Internal: `bench replay` starts this subcommand as its ranks.
void add_replayer(CLI::App& app, Session& session) {
  const auto request = std::make_shared<bench::ReplayRequest>();
  CLI::App& sub = *app.add_subcommand("replayer", "One rank of a replay");
  sub.group("");
  bench::declare(sub, *request);
  sub.callback([request, &session] { session.action = [request] { return bench::run_replayer(*request); }; });
}

/// Internal: `bench` starts this subcommand as its ranks.
void add_worker(CLI::App& app, Session& session) {
  CLI::App& sub = *app.add_subcommand("worker", "One rank of a benchmark");
  sub.group("");
  const auto words = std::make_shared<std::vector<std::string>>();
  sub.add_option("words", *words, "key=value")->required();
  sub.callback([words, &session] { session.action = [words] { return bench::run_worker(*words); }; });
}

void define(CLI::App& app, Session& session) {
  app.require_subcommand(1);
  add_collective(app, session, Collective::allreduce, "Every rank ends with the reduction of all ranks' vectors");
  add_collective(app, session, Collective::reduce_scatter, "Each rank ends with its part of the reduction");
  add_collective(app, session, Collective::allgather, "Every rank ends with the parts of all ranks");
  add_collective(app, session, Collective::broadcast, "Every rank ends with the root's vector");
  add_collective(app, session, Collective::reduce, "The root ends with the reduction");
  add_collective(app, session, Collective::gather, "The root ends with the parts of all ranks");
  add_collective(app, session, Collective::scatter, "Each rank ends with its part of the root's vector");
  add_collective(app, session, Collective::alltoall, "Each rank ends with one part of every rank's vector");
  add_collective(app, session, Collective::barrier, "No rank returns before all ranks have called");
  add_codec(app, session);
  add_step(app, session);
  add_replay(app, session);
  add_replayer(app, session);
  add_exchange(app, session);
  add_exchanger(app, session);
  add_server(app, session);
  add_worker(app, session);
}

}  // namespace

extern constinit const Command bench;
constinit const Command bench{"bench", "Measure collectives and compare with Gloo, Open MPI and MPICH", define};

}  // namespace syncopate::tools::command
