// Options of a simulated parameter server, and how its rows are shown.
#include "plan/servers.hpp"

#include <fmt/format.h>

#include "arguments.hpp"
#include "command.hpp"
#include "syncopate/error.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::plan {
namespace {

constexpr const char* kOptions[] = {"--servers",     "--server-hosts", "--placement",
                                    "--consistency", "--answers",      "--significance"};

nlohmann::json row_of(const ServerSimulation& row) {
  const Simulation& training = row.training;
  return {{"policy", training.policy},
          {"ranks", training.ranks},
          {"servers", row.servers},
          {"algorithm", training.algorithm},
          {"iteration_s", training.iteration_s},
          {"speedup", training.speedup},
          {"exposed_s", training.exposed_s},
          {"compute_s", training.compute_s},
          {"efficiency", training.speedup / training.ranks},
          {"pushed_bytes", row.pushed_bytes},
          {"pulled_bytes", row.pulled_bytes},
          {"exchanges", row.exchanges},
          {"load_variation", row.load_variation}};
}

}  // namespace

void add_servers(CLI::App& app, ServerChoice& choice) {
  app.add_option("--servers", choice.scene.servers, "Exchange parameter_server: servers (default: one for each host)")
      ->check(between(1, 4096));
  app.add_option("--server-hosts", choice.hosts, "Where they are: on the workers' hosts in turns, or on their own")
      ->check(one_of("places of servers", {"workers", "own"}))
      ->capture_default_str();
  app.add_option("--placement", choice.scene.placement, "Which server keeps what (`syncopate info placement`)")
      ->capture_default_str();
  app.add_option("--consistency", choice.scene.consistency, "How old weights may be (`syncopate info consistency`)")
      ->capture_default_str();
  app.add_option("--answers", choice.answers, "Codec of the servers' answers")->capture_default_str();
  app.add_option("--significance", choice.scene.significance,
                 "Consistency adaptive: size of one step's update over the weights'")
      ->check(not_negative())
      ->capture_default_str();
}

void require_servers(const CLI::App& app, const ExchangeOptions& exchange) {
  for (const char* option : kOptions)
    if (app.count(option) > 0 && exchange.exchange != kParameterServer)
      throw Misuse(
          fmt::format("{} is for --exchange {}, and the exchange is {}", option, kParameterServer, exchange.exchange));
}

ServerScene scene_of(const ServerChoice& choice) {
  ServerScene scene = choice.scene;
  scene.own_hosts = choice.hosts == "own";
  return scene;
}

void print_servers(const Profile& profile, const std::vector<ServerSimulation>& rows, bool json) {
  if (json) {
    for (const ServerSimulation& row : rows) print_row(row_of(row));
    return;
  }
  print_text(
      "{}\ncomputing {} a step; exchange by a parameter server\n\n{:>6}{:>9}  {:<12}{:>10}{:>10}{:>10}{:>12}"
      "{:>12}{:>12}{:>8}\n",
      profile.model, format_seconds(rows.front().training.compute_s), "ranks", "servers", "flow", "step", "exposed",
      "speed-up", "efficiency", "pushed", "pulled", "spread");
  for (const ServerSimulation& row : rows)
    print_text("{:>6}{:>9}  {:<12}{:>10}{:>10}{:>10.2f}{:>10.1f} %{:>12}{:>12}{:>8.3f}\n", row.training.ranks,
               row.servers, row.training.policy, format_seconds(row.training.iteration_s),
               format_seconds(row.training.exposed_s), row.training.speedup,
               100 * row.training.speedup / row.training.ranks, format_bytes(row.pushed_bytes),
               format_bytes(row.pulled_bytes), row.load_variation);
  print_text("pushed, pulled: of a worker in a step; spread: of the servers' loads, deviation over mean\n");
}

}  // namespace syncopate::tools::plan
