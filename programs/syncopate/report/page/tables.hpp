// The tables of a report: bytes per bucket, plan, ranks, configuration.
#pragma once

#include <string>
#include <vector>

#include "report/page/planned.hpp"
#include "report/record/run.hpp"
#include "report/record/summary.hpp"

namespace syncopate::tools::report::page {

/// Bytes that each rank sent in a step, compared with the gradients themselves and the bytes of a ring.
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
/// Gradients of which a codec sent a share: the share before the first and before the last evaluation.
[[nodiscard]] std::string sent_table(const record::Run& run);
/// Settings of a recipe's parts, and the times of their steps: medians over the steps of all ranks.
[[nodiscard]] std::string part_table(const record::Run& run);
[[nodiscard]] std::string configuration_table(const record::Run& run);

}  // namespace syncopate::tools::report::page
