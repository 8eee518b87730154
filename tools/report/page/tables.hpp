// The tables of a report: bytes per bucket, plan, ranks, configuration.
#pragma once

#include <string>
#include <vector>

#include "report/page/planned.hpp"
#include "report/record/run.hpp"
#include "report/record/summary.hpp"

namespace syncopate::tools::report::page {

/// What each rank sent in a step beside the gradients themselves and what a ring would send.
[[nodiscard]] std::string byte_bars(const record::Run& run, const record::Summary& summary);
[[nodiscard]] std::string bucket_table(const record::Run& run);
[[nodiscard]] std::string plan_table(const std::vector<PlannedBucket>& buckets);
[[nodiscard]] std::string rank_table(const record::Run& run, const record::Summary& summary);
/// Where the samples came from, epoch by epoch.
[[nodiscard]] std::string input_table(const record::Summary& summary);
/// Servers of a parameter server, as worker 0 found them at its end; empty where they were not recorded.
[[nodiscard]] std::string server_table(const record::Run& run);
/// Workers of a parameter server: staleness, and bytes both ways.
[[nodiscard]] std::string worker_table(const record::Run& run);
/// What a recipe says of its parts, and what their steps took: medians over the steps of all ranks.
[[nodiscard]] std::string part_table(const record::Run& run);
[[nodiscard]] std::string configuration_table(const record::Run& run);

}  // namespace syncopate::tools::report::page
