// What a reader learns first: the headline, the key figures, and one bar that shows where a step's time went.
#include "report/page/headline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/page/markup.hpp"

namespace syncopate::tools::report::page {
namespace {

constexpr double kMostly = 0.95;      // from here on "all of it", "behind the backward pass"
constexpr double kWorthAWord = 0.05;  // share of the step that waits for input
constexpr double kNegligible = 0.02;  // share of the exchange that is not worth a word

std::string time_text(double seconds) { return time_unit(seconds)(seconds); }

bool known(double value) { return std::isfinite(value); }

std::string communication(const record::Run& run, const record::Summary& summary) {
  const record::Budget& budget = summary.budget;
  if (run.is_served()) return "what went to servers and back is not traced";
  if (budget.exchange_s <= 0) return "nothing was communicated";
  const bool backward = budget.behind_backward_s >= kMostly * budget.hidden_s;
  const bool passes = budget.behind_backward_s + budget.behind_forward_s >= kMostly * budget.hidden_s;
  const std::string behind = backward ? "the backward pass" : passes ? "both passes" : "computing";
  const std::string took = fmt::format("communication took {}", time_text(budget.exchange_s));
  if (budget.exposed_s < kNegligible * budget.exchange_s)
    return fmt::format("{}, all of it hidden behind {}", took, behind);
  if (budget.hidden_s < kNegligible * budget.exchange_s)
    return fmt::format("{}, none of it hidden behind computing", took);
  return fmt::format("{}, of which {} hid behind {} and {} did not", took, time_text(budget.hidden_s), behind,
                     time_text(budget.exposed_s));
}

std::string outcome(const record::Summary& summary) {
  std::string result;
  if (known(summary.accuracy))
    result = fmt::format(" Accuracy ended at {}.", percent_fine(summary.accuracy));
  else if (known(summary.loss))
    result = fmt::format(" {} ended at {}.", summary.loss_is_evaluated ? "Evaluation loss" : "The training loss",
                         compact(summary.loss));
  if (summary.replicas == record::Replicas::equal && summary.ranks.size() > 1)
    result += " All ranks ended with the same parameters, bit for bit.";
  return result;
}

/// One key figure: what it is, its value, and a remark.
std::string figure(const std::string& name, const std::string& value, const std::string& remark) {
  return fmt::format("<div><dt>{}</dt><dd><b>{}</b><span>{}</span></dd></div>\n", name, value, remark);
}

/// A codec that was predicted to lose.
std::string refusal(const record::Run& run) {
  const auto codec = run.configuration.find("refused_codec");
  if (codec == run.configuration.end() || !codec->is_string()) return "";
  return fmt::format(" Codec {} was asked for and not used: it was predicted to make exchanges slower.",
                     codec->get<std::string>());
}

record::Spread overall(const record::Summary& summary) {
  record::Spread all{summary.step_s, record::kUnknown, record::kUnknown, 0};
  for (const record::RankSummary& rank : summary.ranks) {
    all.min = std::fmin(all.min, rank.step_seconds.min);  // ignores NaN
    all.max = std::fmax(all.max, rank.step_seconds.max);
  }
  return all;
}

}  // namespace

std::string headline(const record::Run& run, const record::Summary& summary) {
  const std::string model = run.model.empty() ? "a model" : run.model;
  const double ranks = static_cast<double>(run.ranks.size());
  const bool alone = run.ranks.size() > 1 && !run.exchanges();
  const bool short_of_plan = known(summary.planned_steps) && summary.last_step < summary.planned_steps;
  const std::string steps =
      short_of_plan ? fmt::format("{} of {} planned steps", decimal(summary.last_step), decimal(summary.planned_steps))
                    : counted(summary.last_step, "step");
  return fmt::format("{} trained {}{} for {}", counted(ranks, "rank"), model, alone ? ", each alone," : "", steps);
}

std::string lead(const record::Run& run, const record::Summary& summary) {
  const record::Budget& budget = summary.budget;
  if (!known(budget.step_s)) return "No step was recorded.";
  std::string text = fmt::format("Of a {} step", time_text(budget.step_s));
  if (budget.input_s >= kWorthAWord * budget.step_s)
    text += fmt::format(", {} waited for input", time_text(budget.input_s));
  if (known(budget.forward_s)) text += fmt::format(", {} went forward", time_text(budget.forward_s));
  if (known(budget.backward_s)) text += fmt::format(" and {} backward", time_text(budget.backward_s));
  if (summary.traced)
    text += fmt::format("; {}.", communication(run, summary));
  else if (run.exchanges() && known(budget.wait_s))
    text += fmt::format("; {} were spent waiting for communication.", time_text(budget.wait_s));
  else
    text += ".";
  return text + outcome(summary) + refusal(run);
}

std::string key_figures(const record::Run& run, const record::Summary& summary) {
  const record::Budget& budget = summary.budget;
  const record::Spread step = overall(summary);
  const TimeUnit unit = time_unit(step.median);
  const std::string range =
      known(step.min) ? fmt::format("median; {} to {}", unit.number(step.min), unit(step.max)) : "median";
  std::string html = "<dl class=\"figures\">\n";
  html += figure("Step", unit(step.median), range);
  if (known(summary.predicted_s))
    html += figure("Step, predicted", unit(summary.predicted_s), "from what was measured");
  html += figure("Throughput", decimal(summary.samples_per_second, summary.samples_per_second < 100 ? 1 : 0) + " /s",
                 "samples, all ranks together");
  if (run.exchanges()) {
    html += figure("Waiting", percent(summary.wait_share), "of the time, for communication");
    const std::string parts =
        summary.traced ? fmt::format("{} of {}", time_text(budget.hidden_s), time_text(budget.exchange_s)) : "no trace";
    html += figure("Communication hidden", percent(summary.overlap_share()), parts);
    const double ratio = summary.wire_bytes / run.gradient_bytes;
    html += figure("Sent per rank and step", bytes(summary.wire_bytes),
                   known(ratio) ? fmt::format("×{:.2f} the gradients", ratio) : "headers included");
  }
  if (known(summary.accuracy))
    html += figure("Accuracy", percent_fine(summary.accuracy), "at the end");
  else
    html +=
        figure(summary.loss_is_evaluated ? "Evaluation loss" : "Training loss", compact(summary.loss), "at the end");
  return html + "</dl>\n";
}

std::string budget_bar(const record::Summary& summary) {
  const record::Budget& budget = summary.budget;
  struct Part {
    const char *look, *name;
    double seconds;
  };
  std::vector<Part> parts{{"input", "waiting for input", budget.input_s},
                          {"forward", "forward", budget.forward_s},
                          {"backward", "backward", budget.backward_s},
                          {"wait", "waiting", budget.wait_s},
                          {"optimizer", "optimizer", budget.optimizer_s}};
  std::erase_if(parts, [](const Part& part) { return !known(part.seconds) || part.seconds <= 0; });
  double rest = budget.step_s;
  for (const Part& part : parts) rest -= part.seconds;
  if (parts.empty() || !(budget.step_s > 0)) return {};
  if (rest > 0.005 * budget.step_s) parts.push_back({"other", "rest", rest});
  const double total = rest < 0 ? budget.step_s - rest : budget.step_s;
  std::string bar, names;
  double x = 0;
  for (const Part& part : parts) {
    const double width = part.seconds / total * 1040;
    bar += svg::rect(part.look, {x, 0, std::max(0.5, width - 1), 18});
    names += fmt::format(
        "<li><svg viewBox=\"0 0 14 14\" aria-hidden=\"true\"><rect class=\"{}\" width=\"14\" "
        "height=\"14\"/></svg>{} <b>{}</b> <span>{}</span></li>",
        part.look, part.name, time_text(part.seconds), percent(part.seconds / total));
    x += width;
  }
  std::string source = summary.traced ? "of the traced step went" : "of a step went, medians";
  if (summary.traced && summary.ranks.size() > 1) source += ", mean over the ranks";
  return fmt::format(
      "<figure><figcaption>Where the time {}</figcaption>\n<svg class=\"bar\" viewBox=\"0 0 1040 18\" "
      "preserveAspectRatio=\"none\" aria-hidden=\"true\">{}</svg>\n<ul class=\"legend values\">{}</ul></figure>\n",
      source, bar, names);
}

}  // namespace syncopate::tools::report::page
