// The tables of a report: bytes per bucket, plan, ranks, configuration.
#pragma once

#include <string>
#include <vector>

#include "report/planned.hpp"
#include "report/run.hpp"
#include "report/summary.hpp"

namespace syncopate::tools::report {

/// What each rank sent in a step beside the gradients themselves and what a ring would send.
[[nodiscard]] std::string byte_bars(const Run& run, const Summary& summary);
[[nodiscard]] std::string bucket_table(const Run& run);
[[nodiscard]] std::string plan_table(const std::vector<PlannedBucket>& buckets);
[[nodiscard]] std::string rank_table(const Run& run, const Summary& summary);
[[nodiscard]] std::string configuration_table(const Run& run);

}  // namespace syncopate::tools::report
