// The whole report as one HTML page that needs nothing else.
#include "report/page/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/page/chart.hpp"
#include "report/page/headline.hpp"
#include "report/page/markup.hpp"
#include "report/page/planned.hpp"
#include "report/page/style.hpp"
#include "report/page/tables.hpp"
#include "report/page/timeline.hpp"
#include "syncopate/version.hpp"

namespace syncopate::tools::report::page {
namespace {

constexpr std::size_t kNotesShown = 12;
constexpr std::size_t kRanksDrawn = 16;  // further timelines stand folded below
constexpr double kHalfWidth = 500;
constexpr double kAround = 0.05;  // of a single accuracy, what its axis shows below and above

std::string section(const std::string& title, const std::string& remark, const std::string& body) {
  return fmt::format("<section>\n<h2>{}</h2>\n<p>{}</p>\n{}</section>\n", title, remark, body);
}

std::string figure(const std::string& caption, const std::string& body) {
  return fmt::format("<figure><figcaption>{}</figcaption>\n{}</figure>\n", caption, body);
}

std::string notices(const record::Run& run, const record::Summary& summary) {
  std::string html;
  if (run.emulated_compute)
    html +=
        "<div class=\"notice\"><p><b>Computing was emulated by sleeping.</b> Times of forward and backward passes "
        "come from a model of the computation, not from computing.</p></div>\n";
  if (summary.notes.empty()) return html;
  html += "<div class=\"notice\"><ul>\n";
  for (std::size_t i = 0; i < std::min(kNotesShown, summary.notes.size()); ++i)
    html += fmt::format("<li>{}</li>\n", escaped(summary.notes[i]));
  if (summary.notes.size() > kNotesShown)
    html += fmt::format("<li>… and {} more</li>\n", summary.notes.size() - kNotesShown);
  return html + "</ul></div>\n";
}

std::size_t window_of(const std::vector<record::Point>& points) {
  return std::max<std::size_t>(1, points.size() / 40) | 1;
}

/// The figure itself faint, its running mean strong.
std::vector<Line> curve(const std::vector<record::Point>& points, const std::string& label, const std::string& colour) {
  const std::size_t window = window_of(points);
  std::vector<Line> lines;
  if (window > 1) lines.push_back({label, "raw " + colour, record::thinned(points)});
  const std::string mean = window > 1 ? fmt::format("{}, mean of {} steps", label, window) : label;
  lines.push_back({mean, "smooth " + colour, record::thinned(record::running_mean(points, window), 600)});
  return lines;
}

std::vector<record::Point> evaluated(const record::Run& run, double record::Evaluation::*value) {
  std::vector<record::Point> points;
  for (const record::RankRecord& rank : run.ranks) {
    for (const record::Evaluation& evaluation : rank.evaluations)
      if (std::isfinite(evaluation.*value)) points.push_back({evaluation.step, evaluation.*value});
    if (!points.empty()) break;  // every rank evaluates the same parameters
  }
  return points;
}

/// Every chart has the same axis of steps: from 0, or from where a resumed run took up its work.
ChartOptions over_steps_of(const record::Run& run, const std::string& title) {
  double first = INFINITY, last = 1;
  for (const record::RankRecord& rank : run.ranks) {
    if (rank.steps.empty()) continue;
    first = std::min(first, rank.steps.front().step);
    last = std::max(last, rank.steps.back().step);
  }
  return {.title = title, .first_step = first <= 0.1 * last || first == INFINITY ? 0 : first - 1, .last_step = last};
}

/// Whether a chart of both would flatten the training curve: it would take more than half of its height again.
bool is_elsewhere(const std::vector<record::Point>& evaluated, const std::vector<record::Point>& trained) {
  if (evaluated.empty()) return false;
  const auto [low, high] = std::ranges::minmax(trained, {}, &record::Point::y);
  const auto [least, most] = std::ranges::minmax(evaluated, {}, &record::Point::y);
  const double room = (high.y - low.y) / 2;
  return least.y < low.y - room || most.y > high.y + room;
}

std::string learning(const record::Run& run) {
  const std::vector<record::Point> losses = record::over_steps(run, &record::Step::loss);
  const std::vector<record::Point> accuracy = evaluated(run, &record::Evaluation::accuracy),
                                   loss = evaluated(run, &record::Evaluation::loss);
  if (losses.empty() && accuracy.empty() && loss.empty())
    return section("Learning", "Neither a loss nor an accuracy was recorded.", "");
  std::string left, right;
  const bool pair = !accuracy.empty() && !(losses.empty() && loss.empty());
  std::vector<Line> lines = losses.empty() ? std::vector<Line>{} : curve(losses, "training loss", "blue");
  const bool apart = !losses.empty() && is_elsewhere(loss, losses);
  if (!apart) lines.push_back({"evaluation loss", "dots orange", loss});
  ChartOptions loss_chart = over_steps_of(run, "Loss over steps");
  ChartOptions accuracy_chart = over_steps_of(run, "Accuracy over steps");
  if (pair) loss_chart.width = accuracy_chart.width = kHalfWidth;
  accuracy_chart.percent = true;
  if (accuracy.size() == 1) {
    accuracy_chart.low = std::max(0.0, accuracy.front().y - kAround);
    accuracy_chart.high = std::min(1.0, accuracy.front().y + kAround);
  }
  const std::string marks = loss.empty() || apart ? "" : "; dots: evaluation";
  if (!losses.empty() || !loss.empty())
    left = figure("Training loss, mean over the ranks; strong: running mean" + marks, chart(loss_chart, lines));
  if (!accuracy.empty())
    right = figure("Accuracy on the evaluation set", chart(accuracy_chart, {{"accuracy", "dots green", accuracy}}));
  ChartOptions evaluation_chart = over_steps_of(run, "Evaluation loss over steps");
  evaluation_chart.height = 190;
  const std::string below = apart ? figure("Evaluation loss, on a scale of its own",
                                           chart(evaluation_chart, {{"evaluation loss", "dots orange", loss}}))
                                  : "";
  return fmt::format("<section>\n<h2>Learning</h2>\n{}{}{}{}{}</section>\n", pair ? "<div class=\"pair\">" : "", left,
                     right, pair ? "</div>" : "", below);
}

std::string throughput(const record::Run& run) {
  const std::vector<record::Point> rates = record::over_steps(run, &record::Step::samples_per_second);
  if (rates.empty()) return section("Throughput", "No throughput was recorded.", "");
  ChartOptions options = over_steps_of(run, "Throughput over steps");
  options.height = 190, options.low = 0;
  return section("Throughput", "Samples per second of all ranks together; strong: running mean.",
                 "<figure>" + chart(options, curve(rates, "samples/s", "blue")) + "</figure>\n");
}

std::string one_step(const record::Run& run, const record::Summary& summary) {
  if (!summary.traced) return section("One step", "No step was traced: there is no timeline.", "");
  double end_s = 0;
  for (const record::RankSummary& rank : summary.ranks) end_s = std::max(end_s, rank.budget.step_s);
  if (!(end_s > 0)) return section("One step", "The traced step has no length: there is no timeline.", "");
  const std::size_t ranks = run.ranks.size(), drawn = ranks <= kRanksDrawn + 4 ? ranks : kRanksDrawn;
  const std::string picture = timeline(run, {0, drawn, end_s});
  std::string body = "<figure>\n" + timeline_legend(picture) + picture + "</figure>\n";
  if (drawn < ranks)
    body += fmt::format("<details><summary>{} further ranks</summary>\n<figure>{}</figure></details>\n", ranks - drawn,
                        timeline(run, {drawn, ranks, end_s}));
  const TimeUnit unit = time_unit(std::fmax(end_s, summary.step_s), std::fmin(end_s, summary.step_s));
  const std::string typical =
      std::isfinite(summary.step_s)
          ? fmt::format(" The traced step took {}; the median of the run is {}.", unit(end_s), unit(summary.step_s))
          : "";
  std::string meaning = communication(run, summary);
  if (summary.budget.exchange_s > 0)
    meaning += " Exposed (hatched): on its way while its rank does not compute. Hidden: the rest.";
  meaning += copying(summary);
  std::string ranks_are = ranks > 1 ? "All ranks on one axis of time, which starts at a barrier. " : "";
  if (record::starts_with_backward(run))
    ranks_are +=
        "It goes from backward pass to backward pass: the weights of the step arrive during the next forward pass. ";
  return section("One step", ranks_are + meaning + typical, body);
}

std::string traffic(const record::Run& run, const record::Summary& summary) {
  if (!run.exchanges()) return {};
  std::string body = byte_bars(run, summary);
  const std::string count = counted(static_cast<double>(run.buckets.size()), "bucket");
  if (!run.buckets.empty())
    body += fmt::format(
        "<figure class=\"buckets\"><figcaption>{} in the order of their exchange; times from the traced step, mean "
        "over the ranks; Gbit/s: gradient bytes over the time of their exchange</figcaption>\n{}</figure>\n",
        count, bucket_table(run));
  return section("Bytes per step", "Bytes sent for one step, compared with the gradients to combine.", body);
}

std::string input(const record::Summary& summary) {
  if (summary.input.empty()) return {};
  const std::string waiting = std::isfinite(summary.input_share)
                                  ? fmt::format(" Ranks waited for input {} of the time.", percent(summary.input_share))
                                  : "";
  return section("Input", "Where the samples of all ranks came from, and their bytes." + waiting,
                 "<figure>" + input_table(summary) + "</figure>\n");
}

std::string servers(const record::Run& run) {
  if (!run.is_served()) return {};
  const std::vector<record::Point> spread = record::clock_spread(run);
  ChartOptions options = over_steps_of(run, "Steps between the fastest and the slowest worker");
  options.height = 190, options.low = 0, options.whole = true;
  const std::string clocks = spread.empty() ? ""
                                            : figure(
                                                  "Clocks: steps by which the fastest worker is ahead of the slowest, "
                                                  "from the times at which steps ended",
                                                  chart(options, curve(spread, "steps ahead", "blue")));
  return section(
      "Parameter server",
      "Staleness: a worker's own steps less those of everybody in the weights it computes with. Bytes: bodies of "
      "messages, all steps together. Reconnections: how often a worker reached a server again, after a broken "
      "connection or because another process took the server's place. Servers: what they had when worker 0 ended.",
      server_table(run) + clocks + "<figure>" + worker_table(run) + "</figure>\n");
}

std::string codec(const record::Run& run) {
  if (run.ranks.empty()) return {};
  std::vector<record::Point> densities;
  for (const record::Evaluation& evaluation : run.ranks.front().evaluations)
    if (!evaluation.sent.empty()) densities.push_back({evaluation.step, record::density_of(evaluation.sent)});
  if (densities.empty()) return {};
  ChartOptions options = over_steps_of(run, "Share of the elements sent, over steps");
  options.height = 190, options.low = 0, options.percent = true;
  return section(
      "Codec",
      "The share of each gradient's elements that rank 0 sent, mean over the steps before an evaluation. The "
      "threshold is that of the last step; variance / mean is of the importance, where the codec computes it.",
      figure("All coded gradients together, at each evaluation",
             chart(options, {{"share sent", "dots orange", densities}})) +
          sent_table(run));
}

std::string when(const record::Run& run) {
  if (!std::isfinite(run.start_time)) return {};
  const std::string duration = std::isfinite(run.duration_s) ? ", took " + lasted(run.duration_s) : "";
  return fmt::format(" · started {}{}", date(run.start_time), duration);
}

std::string parts(const record::Run& run) {
  if (run.parts.empty()) return {};
  return section(
      "Parts",
      "Settings of the recipe's parts, the times of their steps, and the bytes that a rank sent in them: medians over "
      "all ranks.",
      "<figure>" + part_table(run) + "</figure>\n");
}

}  // namespace

std::string render(const record::Run& run, const record::Summary& summary, const std::string& trace_name) {
  const std::string title = headline(run, summary);
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light "
      "dark\">\n<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n{}<main>\n",
      escaped(title), style_sheet(), hatches());
  html += fmt::format(
      "<header>\n<p class=\"name\">Syncopate run report{}</p>\n<h1>{}</h1>\n<p class=\"lead\">{}</p>\n</header>\n",
      when(run), escaped(title), escaped(lead(run, summary)));
  html += notices(run, summary) + key_figures(run, summary) + budget_bar(summary);
  html += learning(run) + throughput(run) + one_step(run, summary) + plan_section(run, summary);
  html += traffic(run, summary) + codec(run) + servers(run) + input(summary) + parts(run);
  html += section("Ranks",
                  "Times without the first 3 steps; waiting: share of the time of all steps, blocked on "
                  "communication; hidden: share of the traced exchange that overlapped computing.",
                  rank_table(run, summary));
  html += fmt::format("<section>\n<h2>Configuration</h2>\n{}</section>\n", configuration_table(run));
  const std::string trace = trace_name.empty() ? ""
                                               : fmt::format(
                                                     " The timeline for Perfetto or chrome://tracing is in "
                                                     "<a href=\"{0}\">{0}</a>.",
                                                     escaped(trace_name));
  html += fmt::format("<footer>Written by syncopate {}.{}</footer>\n</main>\n<script>{}</script>\n</body>\n</html>\n",
                      escaped(version()), trace, script());
  return html;
}

}  // namespace syncopate::tools::report::page
