// Writes the report of a run: the page, the trace for other viewers, and one row of its figures.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

namespace syncopate::tools::report {

/// Reads the run in `folder`, writes the page to `output` (empty: report.html in the folder) and the trace next to it,
/// and returns the object that `--json` prints. Files are replaced atomically. Throws what `read_run` throws, and
/// SystemFailure if a file cannot be written.
[[nodiscard]] nlohmann::json write_report(const std::filesystem::path& folder, const std::filesystem::path& output);
/// The same figures of the run in `folder`, and "run": the folder. Writes nothing.
[[nodiscard]] nlohmann::json figures_of(const std::filesystem::path& folder);

}  // namespace syncopate::tools::report
