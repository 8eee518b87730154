// A parameter server in the simulator: its options, and the rows of its workers.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "plan/exchange.hpp"
#include "syncopate/simulate.hpp"

namespace syncopate::tools::plan {

struct ServerChoice {
  ServerScene scene;
  std::string hosts = "workers", answers = "none";
};

void add_servers(CLI::App& app, ServerChoice& choice);
/// Throws Misuse where one of their options is given without the exchange.
void require_servers(const CLI::App& app, const ExchangeOptions& exchange);
[[nodiscard]] ServerScene scene_of(const ServerChoice& choice);
void print_servers(const Profile& profile, const std::vector<ServerSimulation>& rows, bool json);

}  // namespace syncopate::tools::plan
