// Controller: one benchmark from its request to its table: rounds of all contenders, interleaved.
#pragma once

#include "bench/options.hpp"
#include "command.hpp"

namespace syncopate::tools::bench {

/// The exit code: 1 if an answer was wrong or a contender failed. Throws Misuse before anything is started.
[[nodiscard]] int run_benchmark(const Request& request, const Session& session);

}  // namespace syncopate::tools::bench
