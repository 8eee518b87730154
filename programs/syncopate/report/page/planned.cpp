// Planned against actual: matching buckets by the gradients they hold, and the table of both.
#include "report/page/planned.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "report/page/markup.hpp"
#include "report/page/tables.hpp"

namespace syncopate::tools::report::page {
namespace {

/// Mean begin and end of the spans of one name over the ranks.
struct Mean {
  double begin_s = 0, end_s = 0, n = 0;
  void add(const Span& span) {
    begin_s += span.begin_s;
    end_s += span.end_s;
    n += 1;
  }
};

std::string signed_share(double share) {
  return std::isfinite(share) ? fmt::format("{}{:.1f} %", share < 0 ? "−" : "+", std::abs(100 * share)) : "–";
}

std::string remark(const record::Run& run, const record::Summary& summary, const std::vector<PlannedBucket>& buckets) {
  std::string text = "Predictions of the synchronizer from the times it had measured, compared with the traced step.";
  if (std::isfinite(summary.predicted_s)) {
    const TimeUnit unit =
        time_unit(std::fmax(summary.step_s, summary.predicted_s), std::fmin(summary.step_s, summary.predicted_s));
    text += fmt::format(" A step was predicted to take {}; the median took {} ({}).", unit(summary.predicted_s),
                        unit(summary.step_s), signed_share(prediction_error(summary)));
  }
  const auto missed = std::ranges::count_if(buckets, [](const PlannedBucket& b) { return std::isnan(b.begin_s); });
  if (missed > 0)
    text += fmt::format(" The policy decides while the step runs: {} not travel as predicted, and the step had {}.",
                        missed == 1 ? "1 bucket did" : fmt::format("{} buckets did", missed),
                        counted(static_cast<double>(run.buckets.size()), "bucket"));
  return text;
}

}  // namespace

std::vector<PlannedBucket> planned_buckets(const record::Run& run) {
  std::map<std::string, Mean> planned, actual;
  std::vector<std::string> order;
  for (const record::RankRecord& rank : run.ranks) {
    for (const Span& span : rank.planned) {
      if (!planned.contains(span.name)) order.push_back(span.name);
      planned[span.name].add(span);
    }
    for (const Span& span : rank.spans)
      if (span.track == "exchange") actual[span.name].add(span);
  }
  std::vector<PlannedBucket> buckets;
  for (const std::string& name : order) {
    const Mean &plan = planned[name], &truth = actual[name];
    buckets.push_back({name, plan.begin_s / plan.n, plan.end_s / plan.n,
                       truth.n > 0 ? truth.begin_s / truth.n : record::kUnknown,
                       truth.n > 0 ? truth.end_s / truth.n : record::kUnknown});
  }
  std::ranges::stable_sort(buckets, {}, &PlannedBucket::planned_begin_s);
  return buckets;
}

double prediction_error(const record::Summary& summary) {
  return (summary.step_s - summary.predicted_s) / summary.step_s;
}

std::string plan_section(const record::Run& run, const record::Summary& summary) {
  const std::vector<PlannedBucket> buckets = planned_buckets(run);
  if (buckets.empty() && !std::isfinite(summary.predicted_s)) return {};
  std::string html = fmt::format("<section>\n<h2>Planned and actual</h2>\n<p>{}</p>\n", remark(run, summary, buckets));
  if (!buckets.empty()) html += plan_table(buckets);
  return html + "</section>\n";
}

}  // namespace syncopate::tools::report::page
