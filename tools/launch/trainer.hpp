// The training program, which stands beside this one where libtorch was found.
#pragma once

#include <string>
#include <vector>

#include "command.hpp"

namespace syncopate::tools::launch {

/// This process becomes `syncopate-train` with these words, and --json where that was asked for. Throws Misuse where it
/// was not built.
[[noreturn]] void become_trainer(const Session& session, std::vector<std::string> words);

}  // namespace syncopate::tools::launch
