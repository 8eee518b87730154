// What a reader learns first: the headline, the key figures, and one bar that shows where a step's time went.
#pragma once

#include <string>

#include "report/run.hpp"
#include "report/summary.hpp"

namespace syncopate::tools::report {

/// "4 ranks trained vgg11 for 400 steps"
[[nodiscard]] std::string headline(const Run& run, const Summary& summary);
/// "Of a 0.61 s step, 0.15 s went forward …": plain sentences, not escaped.
[[nodiscard]] std::string lead(const Run& run, const Summary& summary);
[[nodiscard]] std::string key_figures(const Run& run, const Summary& summary);
[[nodiscard]] std::string budget_bar(const Summary& summary);

}  // namespace syncopate::tools::report
