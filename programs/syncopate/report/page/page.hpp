// The whole report as one HTML page that needs nothing else.
#pragma once

#include <string>

#include "report/record/run.hpp"
#include "report/record/summary.hpp"

namespace syncopate::tools::report::page {

/// `trace_name` is the file in the page's folder that holds the timeline for other viewers; empty: none.
[[nodiscard]] std::string render(const record::Run& run, const record::Summary& summary, const std::string& trace_name);

}  // namespace syncopate::tools::report::page
