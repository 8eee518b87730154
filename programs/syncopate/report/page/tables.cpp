// The tables of a report: bytes per bucket, plan, ranks, configuration.
#include "report/page/tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/page/markup.hpp"
#include "report/record/jsonl.hpp"
#include "report/record/series.hpp"
#include "syncopate/tooling/json.hpp"

namespace syncopate::tools::report::page {
namespace {

constexpr std::size_t kRowsShown = 32;  // further rows stand folded below

struct Column {
  const char* name;
  const char* look;   ///< "n": a number, "t": text
  int width_percent;  ///< fixed, so that the folded rows stand below the others
};

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  ///< cells as HTML
  const char* noun;

  [[nodiscard]] std::string part(std::size_t first, std::size_t last) const {
    std::string html = "<table><colgroup>";
    for (const Column& column : columns) html += fmt::format("<col style=\"width:{}%\">", column.width_percent);
    html += "</colgroup><thead><tr>";
    for (const Column& column : columns) html += fmt::format("<th class=\"{}\">{}</th>", column.look, column.name);
    html += "</tr></thead><tbody>\n";
    for (std::size_t r = first; r < last; ++r) {
      html += "<tr>";
      for (std::size_t c = 0; c < columns.size(); ++c)
        html += fmt::format("<td class=\"{}\">{}</td>", columns[c].look, rows[r][c]);
      html += "</tr>\n";
    }
    return html + "</tbody></table>\n";
  }

  [[nodiscard]] std::string html() const {
    const std::size_t shown = rows.size() <= kRowsShown + kRowsShown / 4 ? rows.size() : kRowsShown;
    std::string html = part(0, shown);
    if (shown < rows.size())
      html += fmt::format("<details><summary>{} further {}</summary>\n{}</details>\n", rows.size() - shown, noun,
                          part(shown, rows.size()));
    return "<div class=\"wide\">" + html + "</div>\n";
  }
};

struct PartSteps {
  double steps = 0;  ///< of one rank
  double step_s = record::kUnknown, wire_bytes = record::kUnknown;
};

PartSteps steps_of(const record::Run& run, const record::Part& part) {
  std::vector<double> step_s, wire_bytes;
  std::size_t most = 0;
  for (const record::RankRecord& rank : run.ranks) {
    const std::size_t before = step_s.size();
    for (const record::Step& step : rank.steps) {
      if (step.part != part.number) continue;
      step_s.push_back(step.step_s);
      wire_bytes.push_back(step.wire_bytes);
    }
    most = std::max(most, step_s.size() - before);
  }
  return {static_cast<double>(most), record::median(std::move(step_s)), record::median(std::move(wire_bytes))};
}

/// "1–2", or one of them where both are equal; "–" where they are unknown.
std::string from_to(double first, double last) {
  if (std::isnan(first)) return "–";
  return first == last ? fmt::format("{}", first) : fmt::format("{}–{}", first, last);
}

std::string share_bar(double share, const char* look) {
  return fmt::format(
      "<svg class=\"bar\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect "
      "class=\"{}\" width=\"{}\" height=\"10\"/></svg>",
      look, px(std::clamp(share, 0.0, 1.0) * 100));
}

std::string layers_of(const record::Run& run, const record::Bucket& bucket) {
  const std::string& first = run.layers[bucket.first].name;
  if (bucket.first == bucket.last) return escaped(first);
  return fmt::format("{} … {} <span class=\"quiet\">({})</span>", escaped(first), escaped(run.layers[bucket.last].name),
                     bucket.last - bucket.first + 1);
}

std::string codec_of(const record::Bucket& bucket) {
  return bucket.codec.empty() ? "" : fmt::format(" <code>{}</code>", escaped(bucket.codec));
}

std::string digest_cell(const record::Run& run, const record::Summary& summary, std::size_t r) {
  const auto& end = run.ranks[r].end;
  if (!end || end->digest.empty()) return "<span class=\"quiet\">none</span>";
  const std::string digest = fmt::format("<code>{}</code>", escaped(end->digest.substr(0, 16)));
  if (run.ranks.size() == 1 || summary.replicas == record::Replicas::alone) return digest;
  return digest + (summary.ranks[r].differs ? " <strong class=\"bad\">NOT equal</strong>" : " equal");
}

std::string state_of(const record::Run& run, const record::Summary& summary, std::size_t r) {
  const record::RankRecord& rank = run.ranks[r];
  if (!rank.present) return "<strong class=\"bad\">wrote nothing</strong>";
  if (!rank.error.empty())
    return fmt::format("<strong class=\"bad\">failed</strong> at {}", decimal(summary.ranks[r].last_step));
  if (!rank.end)
    return fmt::format("<strong class=\"bad\">stopped</strong> at {}", decimal(summary.ranks[r].last_step));
  return decimal(std::isnan(rank.end->steps) ? summary.ranks[r].last_step : rank.end->steps);
}

std::string scalar(const nlohmann::json& value, const std::string& key) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() && key == "start_time") return date(value.get<double>());
  if (value.is_number() && key == "duration_s") return lasted(value.get<double>());
  if (value.is_number() && key.ends_with("_bytes")) return bytes(value.get<double>());
  if (value.is_number_integer() && key != "seed") return decimal(value.get<double>());
  return text_of_json(value);
}

}  // namespace

std::string byte_bars(const record::Run& run, const record::Summary& summary) {
  const double ranks = static_cast<double>(run.ranks.size()), raw = run.gradient_bytes, sent = summary.wire_bytes;
  const double ring = 2 * (ranks - 1) / ranks * raw;
  const double most = std::fmax(std::fmax(raw, sent), ring);
  Table table{{{"", "t", 34}, {"", "t", 40}, {"per step", "n", 13}, {"of the gradients", "n", 13}}, {}, "rows"};
  const auto add = [&](const char* name, double count, const char* look) {
    if (std::isfinite(count))
      table.rows.push_back({name, share_bar(count / most, look), bytes(count),
                            std::isfinite(raw) ? fmt::format("×{:.3f}", count / raw) : ""});
  };
  add("the gradients themselves", raw, "other");
  add("sent by each rank, headers included", sent, "hidden");
  add("an uncompressed ring all-reduce, for comparison", ring, "other");
  return table.html();
}

std::string bucket_table(const record::Run& run) {
  const std::vector<record::BucketCost> costs = record::bucket_costs(run);
  double most = 1, slowest = 0;
  for (const record::Bucket& bucket : run.buckets) most = std::max(most, static_cast<double>(bucket.bytes));
  for (const record::BucketCost& cost : costs) slowest = std::fmax(slowest, cost.seconds);
  const TimeUnit unit = time_unit(slowest, slowest / 10);
  Table table{{{"bucket", "n", 7},
               {"layers", "t", 38},
               {"", "t", 17},
               {"gradients", "n", 10},
               {"exchange", "n", 10},
               {"exposed", "n", 9},
               {"Gbit/s", "n", 9}},
              {},
              "buckets"};
  for (std::size_t k = 0; k < run.buckets.size(); ++k) {
    const record::Bucket& bucket = run.buckets[k];
    const double size = static_cast<double>(bucket.bytes);
    table.rows.push_back({std::to_string(k), layers_of(run, bucket) + codec_of(bucket),
                          share_bar(size / most, "hidden"), bytes(size), unit(costs[k].seconds),
                          unit(costs[k].exposed_s), decimal(size * 8e-9 / costs[k].seconds, 3)});
  }
  return table.html();
}

std::string plan_table(const std::vector<PlannedBucket>& buckets) {
  double last = 0, shortest = INFINITY;
  for (const PlannedBucket& bucket : buckets) {
    last = std::fmax(last, std::fmax(bucket.planned_end_s, bucket.end_s));
    shortest = std::fmin(shortest, bucket.planned_end_s - bucket.planned_begin_s);
  }
  const TimeUnit unit = time_unit(last, std::max(shortest, last / 1000));
  const auto stretch = [&](double begin_s, double end_s) {
    return std::isfinite(begin_s) ? fmt::format("{} to {}", unit.number(begin_s), unit(end_s)) : std::string("–");
  };
  Table table{
      {{"gradients", "t", 40}, {"planned", "n", 21}, {"actual", "n", 21}, {"end, later by", "n", 18}}, {}, "buckets"};
  for (const PlannedBucket& bucket : buckets)
    table.rows.push_back({escaped(bucket.name), stretch(bucket.planned_begin_s, bucket.planned_end_s),
                          stretch(bucket.begin_s, bucket.end_s), unit(bucket.end_s - bucket.planned_end_s)});
  return table.html();
}

std::string rank_table(const record::Run& run, const record::Summary& summary) {
  double slowest = summary.step_s;
  for (const record::RankSummary& rank : summary.ranks) slowest = std::fmax(slowest, rank.step_seconds.max);
  const TimeUnit unit = time_unit(slowest, summary.step_s);
  Table table{{{"rank", "n", 6},
               {"steps", "n", 13},
               {"step, median", "n", 12},
               {"min", "n", 9},
               {"max", "n", 9},
               {"waiting", "n", 9},
               {"hidden", "n", 9},
               {"sent per step", "n", 12},
               {"digest of parameters", "t", 21}},
              {},
              "ranks"};
  for (std::size_t r = 0; r < run.ranks.size(); ++r) {
    const record::RankSummary& rank = summary.ranks[r];
    const record::Spread& step = rank.step_seconds;
    const double hidden =
        rank.traced && rank.budget.exchange_s > 0 ? rank.budget.hidden_s / rank.budget.exchange_s : record::kUnknown;
    table.rows.push_back({std::to_string(r), state_of(run, summary, r), unit(step.median), unit(step.min),
                          unit(step.max), percent(rank.wait_share), percent(hidden), bytes(rank.wire_bytes),
                          digest_cell(run, summary, r)});
  }
  return table.html();
}

std::string input_table(const record::Summary& summary) {
  Table table{{{"epoch", "n", 8},
               {"samples", "n", 14},
               {"own memory", "n", 17},
               {"own disk", "n", 17},
               {"other ranks", "n", 17},
               {"origin", "n", 17},
               {"damaged", "n", 10}},
              {},
              "epochs"};
  for (const record::InputEpoch& row : summary.input) {
    const double all = row.memory.records + row.disk.records + row.peers.records + row.origin.records;
    const auto share = [&](const record::Tier& tier) {
      return all > 0 ? fmt::format("{} <span class=\"quiet\">{}</span>", percent(tier.records / all), bytes(tier.bytes))
                     : std::string("–");
    };
    table.rows.push_back({decimal(row.epoch + 1), decimal(all), share(row.memory), share(row.disk), share(row.peers),
                          share(row.origin), decimal(row.damaged)});
  }
  return table.html();
}

std::string server_table(const record::Run& run) {
  Table table{{{"server", "n", 9},
               {"address", "t", 35},
               {"weights held", "n", 18},
               {"bytes in", "n", 19},
               {"bytes out", "n", 19}},
              {},
              "servers"};
  for (const record::RankRecord& rank : run.ranks) {
    if (!rank.end || !rank.end->served) continue;
    for (const record::ServerRecord& server : rank.end->served->servers)
      table.rows.push_back({std::to_string(table.rows.size()), escaped(server.address), bytes(server.kept_bytes),
                            bytes(server.received_bytes), bytes(server.sent_bytes)});
  }
  return table.rows.empty() ? "" : fmt::format("<figure>{}</figure>\n", table.html());
}

std::string worker_table(const record::Run& run) {
  Table table{{{"worker", "n", 9},
               {"steps", "n", 11},
               {"staleness, mean", "n", 18},
               {"most", "n", 12},
               {"pushed", "n", 16},
               {"pulled", "n", 16},
               {"reconnections", "n", 16}},
              {},
              "workers"};
  for (std::size_t r = 0; r < run.ranks.size(); ++r) {
    const auto& end = run.ranks[r].end;
    if (!end || !end->served) continue;
    const record::Served& served = *end->served;
    table.rows.push_back({std::to_string(r), decimal(end->steps), decimal(served.mean_stale, 1),
                          decimal(served.most_stale), bytes(served.pushed_bytes), bytes(served.pulled_bytes),
                          decimal(served.reconnections)});
  }
  return table.html();
}

std::string sent_table(const record::Run& run) {
  Table table{{{"gradient", "t", 30},
               {"elements", "n", 16},
               {"sent at first", "n", 14},
               {"sent at last", "n", 14},
               {"threshold", "n", 13},
               {"variance / mean", "n", 13}},
              {},
              "sent"};
  const std::vector<record::Evaluation>& evaluations = run.ranks.front().evaluations;
  const auto has_some = [](const record::Evaluation& one) { return !one.sent.empty(); };
  const auto first = std::ranges::find_if(evaluations, has_some);
  const auto last = std::ranges::find_if(evaluations.rbegin(), evaluations.rend(), has_some);
  if (first == evaluations.end()) return "";
  for (const record::SentGradient& sent : last->sent) {
    const auto before = std::ranges::find(first->sent, sent.gradient, &record::SentGradient::gradient);
    table.rows.push_back({escaped(sent.gradient), decimal(sent.elements),
                          percent_fine(before == first->sent.end() ? record::kUnknown : before->density),
                          percent_fine(sent.density), decimal(sent.threshold, 3), decimal(sent.spread, 2)});
  }
  return fmt::format("<figure>{}</figure>\n", table.html());
}

std::string part_table(const record::Run& run) {
  Table table{{{"part", "n", 5},
               {"epochs", "n", 9},
               {"pixels", "n", 8},
               {"batch", "n", 8},
               {"learning rate", "n", 15},
               {"codec", "t", 14},
               {"exchange", "t", 15},
               {"steps", "n", 8},
               {"step", "n", 9},
               {"sent", "n", 9}},
              {},
              "parts"};
  double slowest = 0, fastest = INFINITY;
  for (const record::Part& part : run.parts) {
    const double step_s = steps_of(run, part).step_s;
    slowest = std::fmax(slowest, step_s), fastest = std::fmin(fastest, step_s);
  }
  const TimeUnit unit = time_unit(slowest, fastest);
  for (const record::Part& part : run.parts) {
    const auto [steps, step_s, wire_bytes] = steps_of(run, part);
    const bool timed = std::isfinite(step_s), sent = std::isfinite(wire_bytes);
    table.rows.push_back({decimal(part.number), from_to(part.first_epoch + 1, part.first_epoch + part.epochs),
                          from_to(part.resolution, part.resolution), decimal(part.batch),
                          from_to(part.first_rate, part.last_rate), escaped(part.codec), escaped(part.exchange),
                          decimal(steps), timed ? unit(step_s) : "–", sent ? bytes(wire_bytes) : "–"});
  }
  return table.html();
}

std::string configuration_table(const record::Run& run) {
  static constexpr const char* kFirst[] = {"model",     "data",       "ranks",         "batch", "steps",
                                           "threads",   "seed",       "policy",        "codec", "exchange",
                                           "algorithm", "parameters", "gradient_bytes"};
  std::vector<std::string> keys(std::begin(kFirst), std::end(kFirst));
  for (const auto& [key, value] : run.configuration.items())
    if (key != "command" && !value.is_structured() && std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  std::string html = "<dl class=\"configuration\">\n";
  for (const std::string& key : keys) {
    const auto found = run.configuration.find(key);
    if (found == run.configuration.end() || found->is_structured() || found->is_null()) continue;
    std::string name = key;
    std::ranges::replace(name, '_', ' ');
    html += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(name), escaped(scalar(*found, key)));
  }
  html += "</dl>\n";
  const auto command = run.configuration.find("command");
  if (command != run.configuration.end() && command->is_string())
    html += fmt::format("<pre><code>{}</code></pre>\n", escaped(command->get<std::string>()));
  return html;
}

}  // namespace syncopate::tools::report::page
