// The top of the page: the headline, the key figures, and one bar that divides a step's time.
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

std::string communication(const record::Run& run, const record::Summary& summary) {
  const record::Budget& budget = summary.budget;
  if (run.is_served()) return "Traffic to and from servers is not traced.";
  if (budget.exchange_s <= 0) return "Nothing was communicated.";
  const TimeUnit unit = time_unit(budget.exchange_s, std::min(budget.hidden_s, budget.exposed_s));
  const bool backward = budget.behind_backward_s >= kMostly * budget.hidden_s;
  const bool passes = budget.behind_backward_s + budget.behind_forward_s >= kMostly * budget.hidden_s;
  const std::string behind = backward ? "the backward pass" : passes ? "both passes" : "computing";
  const std::string took = fmt::format("Communication took {}", unit(budget.exchange_s));
  if (budget.exposed_s < kNegligible * budget.exchange_s)
    return fmt::format("{}, all of it hidden behind {}.", took, behind);
  if (budget.hidden_s < kNegligible * budget.exchange_s)
    return fmt::format("{}, none of it hidden behind computing.", took);
  return fmt::format("{}: {} hidden behind {}, {} exposed.", took, unit(budget.hidden_s), behind,
                     unit(budget.exposed_s));
}

std::string copying(const record::Summary& summary) {
  const record::Budget& budget = summary.budget;
  if (!(budget.copy_s > 0)) return "";
  const TimeUnit unit = time_unit(budget.copy_s);
  return fmt::format(" Copies between accelerator and CPU were under way for {}, {} of it hidden behind computing.",
                     unit(budget.copy_s), unit(budget.hidden_copy_s));
}

std::string headline(const record::Run& run, const record::Summary& summary) {
  const std::string model = run.model.empty() ? "a model" : run.model;
  const double ranks = static_cast<double>(run.ranks.size());
  const bool alone = run.ranks.size() > 1 && !run.exchanges();
  const bool short_of_plan = known(summary.planned_steps) && summary.last_step < summary.planned_steps;
  const std::string steps =
      short_of_plan ? fmt::format("{} of {} planned steps", decimal(summary.last_step), decimal(summary.planned_steps))
                    : counted(summary.last_step, "step");
  const std::string trained =
      fmt::format("{} trained {}{} for {}", counted(ranks, "rank"), model, alone ? ", each alone," : "", steps);
  return summary.incomplete.empty() ? trained : fmt::format("{}; {}", trained, summary.incomplete);
}

std::string lead(const record::Run& run, const record::Summary& summary) {
  if (!known(summary.step_s)) return "No step was recorded.";
  std::string text = fmt::format("A step took {} in the median.", time_text(summary.step_s));
  const record::Budget& mean = summary.run;
  std::vector<std::string> parts;
  const auto add = [&](double seconds, double least, const char* what) {
    const double share = seconds / mean.step_s;
    if (share >= least && share > 0) parts.push_back(fmt::format("{} {}", what, percent(share)));
  };
  add(mean.input_s, kWorthAWord, "waiting for input");
  add(mean.forward_s, 0, "forward");
  add(mean.backward_s, 0, "backward");
  if (run.exchanges()) add(mean.wait_s, 0, "waiting for communication");
  if (!parts.empty()) text += fmt::format(" Shares of the time of all steps: {}.", fmt::join(parts, ", "));
  return text + outcome(summary) + refusal(run);
}

std::string key_figures(const record::Run& run, const record::Summary& summary) {
  const record::Budget& budget = summary.budget;
  const record::Spread step = overall(summary);
  const TimeUnit unit = time_unit(step.median);
  const std::string range =
      known(step.min) ? fmt::format("median; {}", time_range(step.min, step.max, unit)) : "median";
  std::string html;
  html += figure("Step", unit(step.median), range);
  if (known(summary.predicted_s))
    html += figure("Step, predicted", unit(summary.predicted_s), "from what was measured");
  html += figure("Throughput", rate(summary.samples_per_second) + " /s", "samples, all ranks together");
  if (run.exchanges()) {
    html += figure("Waiting", percent(summary.wait_share), "of the time of all steps, blocked on communication");
    const TimeUnit traced = time_unit(budget.exchange_s, budget.hidden_s);
    const std::string parts = summary.traced ? fmt::format("{} of {} in the traced step",
                                                           traced.number(budget.hidden_s), traced(budget.exchange_s))
                                             : "no trace";
    if (!run.is_served()) html += figure("Communication hidden", percent(summary.overlap_share()), parts);
    const double ratio = summary.wire_bytes / run.gradient_bytes;
    html += figure("Sent per rank and step", bytes(summary.wire_bytes),
                   known(ratio) ? fmt::format("×{:.2f} the gradients", ratio) : "headers included");
  }
  const std::string evaluated =
      known(summary.evaluated_step) ? fmt::format("after step {:.0f}", summary.evaluated_step) : "at the end";
  if (known(summary.accuracy))
    html += figure("Accuracy", percent_fine(summary.accuracy),
                   known(summary.top_5_accuracy)
                       ? fmt::format("{}; top 5: {}", evaluated, percent_fine(summary.top_5_accuracy))
                       : evaluated);
  else if (summary.loss_is_evaluated)
    html += figure("Evaluation loss", compact(summary.loss), evaluated);
  else
    html += figure("Training loss", compact(summary.loss), "at the end");
  std::size_t count = 0;
  for (auto at = html.find("<dt>"); at != std::string::npos; at = html.find("<dt>", at + 1)) ++count;
  return fmt::format("<dl class=\"figures\" style=\"--all:{};--half:{}\">\n{}</dl>\n", count, (count + 1) / 2, html);
}

std::string budget_bar(const record::Summary& summary) {
  const record::Budget& budget = summary.run;
  struct Part {
    const char *look, *name;
    double seconds;
  };
  std::vector<Part> parts{{"input", "waiting for input", budget.input_s},
                          {"forward", "forward", budget.forward_s},
                          {"backward", "backward", budget.backward_s},
                          {"wait", "waiting for communication", budget.wait_s},
                          {"optimizer", "optimizer", budget.optimizer_s}};
  std::erase_if(parts, [](const Part& part) { return !known(part.seconds) || part.seconds <= 0; });
  double rest = budget.step_s;
  for (const Part& part : parts) rest -= part.seconds;
  if (parts.empty() || !(budget.step_s > 0)) return {};
  if (rest > 0.005 * budget.step_s) parts.push_back({"other", "rest", rest});
  const double total = rest < 0 ? budget.step_s - rest : budget.step_s;
  std::string bar, names;
  double smallest = total;
  for (const Part& part : parts) smallest = std::min(smallest, std::max(part.seconds, total / 100));
  const TimeUnit unit = time_unit(total, smallest);
  double x = 0;
  for (const Part& part : parts) {
    const double width = part.seconds / total * 1040;
    bar += svg::rect(part.look, {x, 0, std::max(0.5, width - 1), 18});
    names += fmt::format(
        "<li><svg viewBox=\"0 0 14 14\" aria-hidden=\"true\"><rect class=\"{}\" width=\"14\" "
        "height=\"14\"/></svg>{} <b>{}</b> <span>{}</span></li>",
        part.look, part.name, unit(part.seconds), percent(part.seconds / total));
    x += width;
  }
  const std::string source = summary.ranks.size() > 1 ? "of a step went, mean over all steps and ranks"
                                                      : "of a step went, mean over all steps";
  return fmt::format(
      "<figure><figcaption>Where the time {}</figcaption>\n<svg class=\"bar\" viewBox=\"0 0 1040 18\" "
      "preserveAspectRatio=\"none\" aria-hidden=\"true\">{}</svg>\n<ul class=\"legend values\">{}</ul></figure>\n",
      source, bar, names);
}

}  // namespace syncopate::tools::report::page
