// The top of the page: the headline, the key figures, and one bar that divides a step's time.
#pragma once

#include <string>

#include "report/record/run.hpp"
#include "report/record/summary.hpp"

namespace syncopate::tools::report::page {

/// "4 ranks trained vgg11 for 400 steps", and which ranks are missing
[[nodiscard]] std::string headline(const record::Run& run, const record::Summary& summary);
/// "A step took 610 ms in the median. Shares of the time of all steps: 25 % forward …": plain sentences, not escaped.
[[nodiscard]] std::string lead(const record::Run& run, const record::Summary& summary);
/// How much of the communication of the traced step was hidden, in a sentence.
[[nodiscard]] std::string communication(const record::Run& run, const record::Summary& summary);
/// How much of the copies between accelerator and CPU was hidden, in a sentence after a space; empty without copies.
[[nodiscard]] std::string copying(const record::Summary& summary);
[[nodiscard]] std::string key_figures(const record::Run& run, const record::Summary& summary);
[[nodiscard]] std::string budget_bar(const record::Summary& summary);

}  // namespace syncopate::tools::report::page
