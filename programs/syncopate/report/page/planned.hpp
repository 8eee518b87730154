// Planned against actual: when each bucket was predicted to travel, when it did, and what a step was predicted to take.
#pragma once

#include <string>
#include <vector>

#include "report/record/run.hpp"
#include "report/record/summary.hpp"

namespace syncopate::tools::report::page {

/// One bucket in the traced step, seconds of the step, means over the ranks that have a trace.
struct PlannedBucket {
  std::string name;
  double planned_begin_s = record::kUnknown, planned_end_s = record::kUnknown;
  double begin_s = record::kUnknown, end_s = record::kUnknown;  ///< unknown where no bucket of that name travelled
};

/// In the order of their exchange; empty where nothing was predicted.
[[nodiscard]] std::vector<PlannedBucket> planned_buckets(const record::Run& run);
/// (measured - predicted) / measured step; unknown where no step was predicted.
[[nodiscard]] double prediction_error(const record::Summary& summary);
/// The section of the page; empty where nothing was predicted.
[[nodiscard]] std::string plan_section(const record::Run& run, const record::Summary& summary);

}  // namespace syncopate::tools::report::page
