// The timeline of one step: per rank a lane of computing and a lane of communication, on one axis of time.
#include "report/page/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "report/page/markup.hpp"
#include "report/record/overlap.hpp"
#include "svg/axis.hpp"
#include "svg/element.hpp"

namespace syncopate::tools::report::page {
namespace {

constexpr double kWidth = 1040, kLeft = 112, kRight = 8, kTop = 26;
constexpr double kLane = 22, kLaneGap = 4, kRankGap = 18, kPlanned = 12;
constexpr double kEdged = 6;        // buckets narrower than this have no edges: they would hide them
constexpr double kLetter = 6.4;     // mean width of a letter of a bar's label
constexpr double kNarrowest = 1.0;  // neighbours narrower than this are drawn as one bar

struct Bar {
  double begin_s = 0, end_s = 0;
  std::string look;                 ///< CSS class
  std::string title;                ///< shown on hover
  std::vector<std::string> labels;  ///< longest first; the first that fits is written on the bar
  int bucket = -1;                  ///< bars of one bucket are lit together
};

/// Draws the bars of one rank after another, growing downward.
struct Drawing {
  const record::Run& run;
  svg::Axis time;
  TimeUnit unit;
  double y = kTop;
  std::string svg;

  void rect(const Bar& bar, double height) {
    const double x = time(bar.begin_s), width = std::max(0.4, time(bar.end_s) - x);
    const double gap = width > 3 ? 0.7 : 0;  // neighbours stay apart without strokes
    svg += svg::rect(bar.look, {x, y, width - gap, height},
                     bar.bucket >= 0 ? fmt::format("data-bucket=\"{}\"", bar.bucket) : "", bar.title);
    for (const std::string& label : bar.labels) {
      if (static_cast<double>(label.size()) * kLetter + 8 > width) continue;
      svg += svg::text("on " + bar.look, {x + width / 2, y + height / 2 + 4}, label);
      break;
    }
  }

  void lane_name(const char* name) { svg += svg::text("tick", {kLeft - 10, y + kLane / 2 + 4}, name, svg::kAtEnd); }
};

std::string look_of(const std::string& track) {
  for (const char* known : {"input", "forward", "backward", "optimizer", "wait"})
    if (track == known) return known;
  if (track.starts_with("copy")) return "copy";
  return track == "update" ? "optimizer" : "other";
}

Bar bar_of(const Span& span, const TimeUnit& unit) {
  const bool waiting = span.track == "wait";
  const std::string what = waiting ? "waiting for communication" : span.track;
  const std::string name = span.name.empty() || span.name == span.track || waiting ? "" : ", " + span.name;
  const char* what_of = record::is_copy(span) ? "" : " of gradients";  // copies also transfer weights
  const std::string size = span.bytes ? fmt::format(", {}{}", bytes(static_cast<double>(span.bytes)), what_of) : "";
  const std::string title = fmt::format("{}{}\n{}{}", what, name, unit(span.end_s - span.begin_s), size);
  Bar bar{span.begin_s, span.end_s, look_of(span.track), title, {}};
  if (waiting)
    bar.labels = {"waiting"};
  else if (name.empty())
    bar.labels = {span.track};
  else
    bar.labels = {span.name};
  return bar;
}

/// The training thread's spans in order. A pass that waits for weights between its layers comes in pieces.
std::vector<Span> computing_spans(const record::RankRecord& rank) {
  const record::Intervals waits = record::covered(rank.spans, "wait");
  std::vector<Span> spans;
  for (const Span& span : rank.spans) {
    if (record::is_beside(span)) continue;
    const record::Intervals whole{{span.begin_s, span.end_s}};
    const record::Intervals pieces = span.track == "wait" ? whole : record::without(whole, waits);
    for (const record::Interval& piece : pieces)
      spans.push_back({span.track, span.name, piece.begin, piece.end, span.bytes});
  }
  std::ranges::stable_sort(spans, {}, &Span::begin_s);
  return spans;
}

/// Spans of the training thread. Runs of very narrow spans of one track become one bar.
void draw_computing(Drawing& drawing, const record::RankRecord& rank) {
  const std::vector<Span> spans = computing_spans(rank);
  const double narrowest_s = kNarrowest / (drawing.time.to - drawing.time.from) * drawing.time.high;
  const auto joins = [&](const Span& run, const Span& next) {
    return run.end_s - run.begin_s < narrowest_s && next.track == run.track && next.begin_s - run.end_s < narrowest_s;
  };
  for (std::size_t i = 0; i < spans.size();) {
    Span run = spans[i];
    std::size_t next = i + 1;
    for (; next < spans.size() && joins(run, spans[next]); ++next)
      run.end_s = std::max(run.end_s, spans[next].end_s), run.bytes += spans[next].bytes;
    if (next > i + 1) run.name = fmt::format("{} … {} ({} spans)", spans[i].name, spans[next - 1].name, next - i);
    drawing.rect(bar_of(run, drawing.unit), kLane);
    i = next;
  }
}

/// "bucket 2, features.8.weight … features.11.bias" for the k-th exchange, if the run's plan has it.
std::string bucket_name(const record::Run& run, const Span& span, std::size_t k) {
  if (k >= run.buckets.size()) return span.name;
  const record::Bucket& bucket = run.buckets[k];
  const std::string& last = run.layers[bucket.last].name;
  const std::string first = bucket.first == bucket.last ? "" : run.layers[bucket.first].name + " … ";
  return fmt::format("bucket {}, {}{}", k, first, last);
}

std::string exchange_title(const std::string& name, const Span& span, const TimeUnit& unit, double exposed_s) {
  const double seconds = span.end_s - span.begin_s, size = static_cast<double>(span.bytes);
  std::string title = fmt::format("{}\n{}", name, unit(seconds));
  if (span.bytes) title += fmt::format(", {}", bytes(size));
  if (span.bytes && seconds > 0) title += fmt::format(", {:.3f} Gbit/s", size * 8e-9 / seconds);
  return fmt::format("{}\n{} exposed", title, unit(exposed_s));
}

/// The lane on which `span` overlaps no earlier one noticeably; grows `lane_ends` where there is none.
std::size_t lane_for(const Span& span, std::vector<double>& lane_ends, double whole_s) {
  const double slack = std::max((span.end_s - span.begin_s) * 0.05, whole_s * 0.005);
  std::size_t lane = 0;
  while (lane < lane_ends.size() && lane_ends[lane] > span.begin_s + slack) ++lane;
  if (lane == lane_ends.size()) lane_ends.push_back(0);
  lane_ends[lane] = span.end_s;
  return lane;
}

/// Transfer of one bucket, or of its weights: the part that overlaps computing is plain, the exposed part hatched.
struct Transfer {
  const Span& span;
  std::string name, label;
  int bucket = -1;
};

void draw_message(Drawing& drawing, const Transfer& message, const record::Intervals& busy) {
  const auto& [span, name, label, bucket] = message;
  const record::Interval whole{span.begin_s, span.end_s};
  const record::Intervals bare = record::without({whole}, busy);
  const bool narrow = drawing.time(span.end_s) - drawing.time(span.begin_s) < kEdged;
  const std::string look = span.track == "broadcast" ? "weights" : "hidden";
  for (const record::Interval& part : record::without({whole}, bare))
    drawing.rect({part.begin, part.end, look, {}, {}, bucket}, kLane);
  for (const record::Interval& part : bare) drawing.rect({part.begin, part.end, "exposed", {}, {}, bucket}, kLane);
  const std::string size = fmt::format("{} · {}", label, bytes(static_cast<double>(span.bytes)));
  drawing.rect({whole.begin,
                whole.end,
                narrow ? "clear" : "clear edged",
                exchange_title(name, span, drawing.unit, record::length(bare)),
                {size, label},
                bucket},
               kLane);
}

/// The k-th message of its track; weights travel in the reverse order of gradients.
Transfer message_of(const record::Run& run, const Span& span, std::size_t k, std::size_t of) {
  if (of != run.buckets.size()) return {span, span.name, span.name, static_cast<int>(k)};
  const bool weights = span.track == "broadcast";
  const std::size_t bucket = weights ? of - 1 - k : k;
  const std::string name = bucket_name(run, span, bucket);
  return {span, weights ? "weights of " + name : name, fmt::format("{}{}", weights ? "w" : "", bucket),
          static_cast<int>(bucket)};
}

/// Calls `draw(span)` for each span in order with the drawing at its lane: the first that is free.
void draw_on_lanes(Drawing& drawing, const std::vector<Span>& spans, const std::function<void(const Span&)>& draw) {
  const double top = drawing.y;
  std::vector<double> lane_ends;
  for (const Span& span : spans) {
    const auto lane = static_cast<double>(lane_for(span, lane_ends, drawing.time.high));
    drawing.y = top + lane * (kLane + 2);
    draw(span);
  }
  drawing.y = top + static_cast<double>(lane_ends.size()) * (kLane + 2) - 2;
}

std::vector<Span> ordered_if(const std::vector<Span>& spans, bool (*is_wanted)(const Span&)) {
  std::vector<Span> result;
  std::ranges::copy_if(spans, std::back_inserter(result), is_wanted);
  std::ranges::stable_sort(result, {}, &Span::begin_s);
  return result;
}

void draw_exchange(Drawing& drawing, const std::vector<Span>& spans, const record::Intervals& busy) {
  std::map<std::string, std::size_t> count, seen;
  for (const Span& span : spans) ++count[span.track];
  drawing.lane_name("network");
  draw_on_lanes(drawing, spans, [&](const Span& span) {
    if (record::is_message(span))
      draw_message(drawing, message_of(drawing.run, span, seen[span.track]++, count[span.track]), busy);
    else
      drawing.rect(bar_of(span, drawing.unit), kLane);
  });
}

/// Copies down and copies up, which devices make at the same time.
void draw_copies(Drawing& drawing, const std::vector<Span>& spans) {
  drawing.lane_name("copies");
  draw_on_lanes(drawing, spans, [&](const Span& span) { drawing.rect(bar_of(span, drawing.unit), kLane); });
}

/// A span of the threads of the exchange.
bool is_of_exchange(const Span& span) { return record::is_beside(span) && !record::is_copy(span); }

/// The exchanges as they were predicted.
void draw_plan(Drawing& drawing, const record::RankRecord& rank) {
  drawing.lane_name("planned");
  for (const Span& span : rank.planned)
    drawing.rect({span.begin_s,
                  span.end_s,
                  "planned",
                  fmt::format("planned: {}\n{} to {}", span.name, drawing.unit(span.begin_s), drawing.unit(span.end_s)),
                  {}},
                 kPlanned);
  drawing.y += kPlanned + kLaneGap;
}

void draw_rank(Drawing& drawing, std::size_t r) {
  const record::RankRecord& rank = drawing.run.ranks[r];
  const double middle = drawing.y + kLane / 2 + 4;
  drawing.svg += svg::text("rank", {0, middle}, fmt::format("rank {}", r));
  if (rank.spans.empty()) {
    drawing.svg += svg::text("tick", {kLeft, middle}, "no trace");
    drawing.y += kLane + kRankGap;
    return;
  }
  drawing.lane_name("compute");
  draw_computing(drawing, rank);
  drawing.y += kLane;
  if (const auto copies = ordered_if(rank.spans, record::is_copy); !copies.empty()) {
    drawing.y += kLaneGap;
    draw_copies(drawing, copies);
  }
  if (const auto exchanged = ordered_if(rank.spans, is_of_exchange); !exchanged.empty()) {
    drawing.y += kLaneGap;
    if (!rank.planned.empty()) draw_plan(drawing, rank);
    draw_exchange(drawing, exchanged, record::computing(rank.spans));
  }
  drawing.y += kRankGap;
}

}  // namespace

std::string timeline(const record::Run& run, const TimelineRange& range) {
  const TimeUnit unit = time_unit(range.end_s, range.end_s / 6);
  svg::Axis time = svg::axis(0, range.end_s * unit.per_second, 8);
  const svg::Axis labels = time;
  time.high = range.end_s, time.from = kLeft, time.to = kWidth - kRight;
  Drawing drawing{run, time, unit, kTop, {}};
  for (std::size_t r = range.first_rank; r < range.last_rank; ++r) draw_rank(drawing, r);
  const double bottom = drawing.y - kRankGap + 6;
  std::string frame;
  for (const double tick : labels.ticks) {
    const double x = time(tick / unit.per_second);
    const std::string label = decimal(tick, labels.digits) + (tick == 0 ? "" : fmt::format(" {}", unit.name));
    frame += svg::line("grid", {x, kTop - 8}, {x, bottom}) + svg::text("tick", {x, kTop - 13}, label, svg::kAtMiddle);
  }
  return fmt::format(
      "<svg class=\"timeline\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Timeline of one step\">\n"
      "{}{}</svg>\n",
      px(kWidth), px(bottom + 4), frame, drawing.svg);
}

std::string timeline_legend(const std::string& picture) {
  static constexpr std::pair<const char*, const char*> kEntries[] = {
      {"forward", "forward"},
      {"backward", "backward, a box per layer"},
      {"optimizer", "optimizer"},
      {"input", "waiting for input"},
      {"hidden", "a bucket on its way, hidden behind computing"},
      {"weights", "its weights on their way, hidden (w3: of bucket 3)"},
      {"exposed", "exposed: on its way while nothing computes"},
      {"wait", "waiting for communication"},
      {"planned", "as planned"},
      {"other", "encoding and decoding"},
      {"copy", "a copy between accelerator and CPU"}};
  std::string html = "<ul class=\"legend\">";
  for (const auto& [look, meaning] : kEntries)
    if (picture.find(fmt::format("<rect class=\"{}\"", look)) != std::string::npos)
      html += fmt::format(
          "<li><svg viewBox=\"0 0 14 14\" aria-hidden=\"true\"><rect class=\"{}\" width=\"14\" "
          "height=\"14\"/></svg>{}</li>",
          look, meaning);
  return html + "</ul>\n";
}

std::string hatches() {
  return "<svg class=\"defs\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs>"
         "<pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
         "patternTransform=\"rotate(45)\"><rect class=\"hatch-ground\" width=\"6\" height=\"6\"/>"
         "<rect class=\"hatch-line\" width=\"2.4\" height=\"6\"/></pattern>"
         "<pattern id=\"faint-hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
         "patternTransform=\"rotate(45)\"><rect class=\"faint-ground\" width=\"6\" height=\"6\"/>"
         "<rect class=\"faint-line\" width=\"1.2\" height=\"6\"/></pattern></defs></svg>\n";
}

}  // namespace syncopate::tools::report::page
