// Options of `syncopate run` for the servers of a parameter server.
#pragma once

#include <CLI/CLI.hpp>

#include "launch/launch.hpp"

namespace syncopate::tools::launch {

/// They fill `job`, which must outlive the parsing.
void add_server_options(CLI::App& app, JobOptions& job);

}  // namespace syncopate::tools::launch
