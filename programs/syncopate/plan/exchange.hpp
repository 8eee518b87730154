// The options of the exchange of gradients, for commands that predict.
#pragma once

#include <CLI/CLI.hpp>

#include "syncopate/foresight.hpp"

namespace syncopate::tools::plan {

struct ExchangeOptions {
  std::string codec = "none", exchange = "allreduce";
  std::string density{};  ///< a number, or the file with the rows of a run; empty: not known
};

void add_exchange(CLI::App& app, ExchangeOptions& options);
/// Reads the densities. Throws Misuse for a share out of range, and for a file without densities.
[[nodiscard]] ExchangeChoice choice_of(const ExchangeOptions& options);

}  // namespace syncopate::tools::plan
