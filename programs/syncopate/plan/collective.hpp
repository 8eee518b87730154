// The plan of one collective: what an algorithm does, what it costs, and how it compares.
#pragma once

#include "command.hpp"

namespace syncopate::tools::plan {

/// Declares `collective NAME` as a part of `syncopate plan`.
void add_collective(CLI::App& app, Session& session);

}  // namespace syncopate::tools::plan
