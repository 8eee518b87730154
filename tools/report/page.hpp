// The whole report as one HTML page that needs nothing else.
#pragma once

#include <string>

#include "report/run.hpp"
#include "report/summary.hpp"

namespace syncopate::tools::report {

/// `trace_name` is the file beside the page that holds the timeline for other viewers; empty: none.
[[nodiscard]] std::string page(const Run& run, const Summary& summary, const std::string& trace_name);

}  // namespace syncopate::tools::report
