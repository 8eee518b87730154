// Writes the report of a run: the page, the trace for other viewers, and one row of its figures.
#include "report/report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>

#include "report/page/page.hpp"
#include "report/page/planned.hpp"
#include "report/record/run.hpp"
#include "report/record/summary.hpp"
#include "syncopate/error.hpp"
#include "syncopate/trace.hpp"

namespace syncopate::tools::report {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

void replace(const fs::path& file, const std::string& content) {
  fs::path partial = file;
  partial += ".partial";
  std::error_code failed;
  {
    std::ofstream stream(partial, std::ios::binary | std::ios::trunc);
    stream.write(content.data(), static_cast<std::streamsize>(content.size()));
    stream.close();
    if (!stream) failed = std::make_error_code(std::errc::io_error);
  }
  if (!failed) fs::rename(partial, file, failed);
  if (!failed) return;
  std::error_code ignored;
  fs::remove(partial, ignored);
  throw SystemFailure(fmt::format("cannot write {}", file.string()));
}

/// The trace in the page's folder: trace.json for report.html, else a name derived from the page's.
fs::path trace_beside(const fs::path& page) {
  if (page.filename() == "report.html") return page.parent_path() / "trace.json";
  fs::path trace = page;
  return trace.replace_extension(".trace.json");
}

json known(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

json known_count(double value) {
  return std::isfinite(value) ? json(static_cast<std::uint64_t>(std::llround(value))) : json(nullptr);
}

json equality(record::Replicas replicas) {
  if (replicas == record::Replicas::equal) return true;
  if (replicas == record::Replicas::differ) return false;
  return nullptr;
}

json row_of(const record::Run& run, const record::Summary& summary) {
  const record::Budget& budget = summary.budget;
  json row{{"model", run.model},
           {"ranks", run.ranks.size()},
           {"steps", static_cast<std::uint64_t>(summary.last_step)},
           {"step_s", known(summary.step_s)},
           {"predicted_s", known(summary.predicted_s)},
           {"prediction_error", known(page::prediction_error(summary))},
           {"samples_per_second", known(summary.samples_per_second)},
           {"wait_share", known(summary.wait_share)},
           {"wire_bytes_per_step", known_count(summary.wire_bytes)},
           {"gradient_bytes", known_count(run.gradient_bytes)},
           {"forward_s", known(budget.forward_s)},
           {"backward_s", known(budget.backward_s)},
           {"exchange_s", known(budget.exchange_s)},
           {"hidden_s", known(budget.hidden_s)},
           {"exposed_s", known(budget.exposed_s)},
           {"overlap_share", known(summary.overlap_share())},
           {"digests_equal", equality(summary.replicas)},
           {"emulated_compute", run.emulated_compute},
           {"notes", summary.notes}};
  if (std::isfinite(summary.accuracy)) row["accuracy"] = summary.accuracy;
  if (std::isfinite(summary.top_5_accuracy)) row["top_5_accuracy"] = summary.top_5_accuracy;
  if (std::isfinite(summary.loss)) row["loss"] = summary.loss;
  return row;
}

}  // namespace

json write_report(const fs::path& folder, const fs::path& output) {
  const record::Run run = record::read_run(folder);
  const record::Summary summary = record::summary_of(run);
  const fs::path page_file = output.empty() ? folder / "report.html" : output;
  const fs::path trace_file = trace_beside(page_file);
  json row = row_of(run, summary);
  row["report"] = page_file.string();
  row["trace"] = nullptr;
  if (summary.traced) {
    std::vector<std::vector<Span>> spans;
    for (const record::RankRecord& rank : run.ranks) {
      spans.push_back(rank.spans);
      spans.back().insert(spans.back().end(), rank.planned.begin(), rank.planned.end());
    }
    replace(trace_file, chrome_trace(spans));
    row["trace"] = trace_file.string();
  }
  replace(page_file, page::render(run, summary, summary.traced ? trace_file.filename().string() : ""));
  return row;
}

json figures_of(const fs::path& folder) {
  const record::Run run = record::read_run(folder);
  json row = row_of(run, record::summary_of(run));
  row["run"] = folder.string();
  return row;
}

}  // namespace syncopate::tools::report
