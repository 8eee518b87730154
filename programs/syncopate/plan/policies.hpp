// `syncopate plan PROFILE`: every policy's step on a cluster side by side, and buckets for other frameworks.
#pragma once

#include "command.hpp"

namespace syncopate::tools::plan {

/// Declares PROFILE and its options on `app`, and sets the session's action unless a subcommand of `app` was given.
void add_policies(CLI::App& app, Session& session);

}  // namespace syncopate::tools::plan
