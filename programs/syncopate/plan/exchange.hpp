// The options of the exchange of gradients, for commands that predict.
#pragma once

#include <CLI/CLI.hpp>

#include "syncopate/predict.hpp"

namespace syncopate::tools::plan {

struct ExchangeChoice {
  std::string codec = "none", exchange = "allreduce";
  std::string density{};  ///< a number, or the file with the rows of a run; empty: not known
  [[nodiscard]] bool is_plain() const { return codec == "none" && exchange == "allreduce"; }
};

void add_exchange(CLI::App& app, ExchangeChoice& choice);
/// The law of the choice for the profile's gradients; empty for a plain all-reduce. A layer of unknown shape counts as
/// the most square matrix. Throws Misuse for unknown names, and for an algorithm that the exchange cannot use.
[[nodiscard]] ExchangeLawOf law_of(const ExchangeChoice& choice, const Profile& profile, const Cluster& cluster,
                                   const std::string& algorithm = "auto");
/// Warnings where the cluster does not know how long the codec takes, or how many elements it sends is assumed.
[[nodiscard]] std::vector<std::string> doubts_of(const ExchangeChoice& choice, const ExchangeLawOf& law);

}  // namespace syncopate::tools::plan
