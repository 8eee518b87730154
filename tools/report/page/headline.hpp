// What a reader learns first: the headline, the key figures, and one bar that shows where a step's time went.
#pragma once

#include <string>

#include "report/record/run.hpp"
#include "report/record/summary.hpp"

namespace syncopate::tools::report::page {

/// "4 ranks trained vgg11 for 400 steps"
[[nodiscard]] std::string headline(const record::Run& run, const record::Summary& summary);
/// "Of a 0.61 s step, 0.15 s went forward …": plain sentences, not escaped.
[[nodiscard]] std::string lead(const record::Run& run, const record::Summary& summary);
[[nodiscard]] std::string key_figures(const record::Run& run, const record::Summary& summary);
[[nodiscard]] std::string budget_bar(const record::Summary& summary);

}  // namespace syncopate::tools::report::page
