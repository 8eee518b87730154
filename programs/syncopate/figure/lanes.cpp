// Lanes: when each policy computes and when it exchanges, one above the other on one axis of time, as SVG.
#include "figure/lanes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "figure/canvas.hpp"
#include "figure/plot.hpp"
#include "svg/element.hpp"
#include "syncopate/error.hpp"
#include "syncopate/tooling/json.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::figure {

namespace {

using svg::Axis;
using svg::line;
using svg::text;

constexpr double kWidth = 880, kLeft = 112, kRight = 96, kTop = 78, kBottom = 52;
constexpr double kLane = 20, kLaneGap = 3, kPanelGap = 20, kPanel = 2 * kLane + kLaneGap + kPanelGap;
constexpr double kLetter = 5.8;  // mean width of a letter on a bar
constexpr double kNarrow = 2.5;  // bars narrower than this have no gap between them: it would hide them

struct Track {
  const char *name, *colour;
  int lane;
};
constexpr Track kTracks[] = {{"forward", kColours[5], 0}, {"backward", kColours[0], 0}, {"exchange", kColours[1], 1}};

const Track* track_of(const Bar& bar) {
  const auto* found = std::ranges::find(kTracks, bar.track, &Track::name);
  return found == std::end(kTracks) ? nullptr : found;
}

std::string fill_of(const Track& track) { return fmt::format("fill=\"{}\"", track.colour); }

std::string bar_of(const Bar& bar, const Track& track, const Axis& time, double top) {
  const double x = time(bar.begin_s), width = std::max(0.5, time(bar.end_s) - x);
  const double y = top + track.lane * (kLane + kLaneGap);
  std::string svg = svg::rect("", {x, y, width > kNarrow ? width - 0.8 : width, kLane}, fill_of(track),
                              fmt::format("{}, {}", bar.name == bar.track ? bar.track : bar.track + " " + bar.name,
                                          format_seconds(bar.end_s - bar.begin_s)));
  const std::string& label = bar.name;
  if (bar.track != "backward" && static_cast<double>(label.size()) * kLetter + 6 < width)
    svg += text("on", {x + width / 2, y + kLane / 2 + 3.5}, label);
  return svg;
}

std::string drawn(const Panel& panel, const Axis& time, double top) {
  std::string svg = text("name end", {kLeft - 10, top + kLane + kLaneGap / 2 + 4}, panel.label);
  double end_s = 0;
  for (const Bar& bar : panel.bars) {
    if (const Track* track = track_of(bar)) svg += bar_of(bar, *track, time, top);
    end_s = std::max(end_s, bar.end_s);
  }
  svg += line("mark", {time(end_s) + 1, top - 3}, {time(end_s) + 1, top + 2 * kLane + kLaneGap + 3});
  return svg + text("tick", {time(end_s) + 7, top + kLane + kLaneGap / 2 + 4}, format_seconds(end_s));
}

std::string legend() {
  std::string svg;
  double x = kLeft;
  for (const Track& track : kTracks) {
    svg += svg::rect("", {x, 40, 14, 14}, fill_of(track));
    svg += text("tick", {x + 20, 51}, track.name);
    x += 104;
  }
  return svg;
}

}  // namespace

std::vector<Panel> panels_of(const std::vector<nlohmann::json>& rows, const std::vector<std::string>& by) {
  std::vector<Panel> panels;
  for (const nlohmann::json& row : rows) {
    if (!row.contains("track") || !row.contains("begin_s") || !row.contains("end_s")) continue;
    std::string label;
    for (const std::string& key : by)
      if (const auto found = row.find(key); found != row.end())
        label += (label.empty() ? "" : " ") + (found->is_string() ? found->get<std::string>() : text_of_json(*found));
    auto panel = std::ranges::find(panels, label, &Panel::label);
    if (panel == panels.end()) panel = panels.insert(panels.end(), Panel{label, {}});
    panel->bars.push_back({row["track"], row.value("name", ""), row["begin_s"], row["end_s"]});
  }
  return panels;
}

std::string svg_of_lanes(const std::string& title, const std::vector<Panel>& panels) {
  if (panels.empty()) throw Misuse("nothing to draw: no row has track, begin_s and end_s");
  double end_s = 0;
  for (const Panel& panel : panels)
    for (const Bar& bar : panel.bars) end_s = std::max(end_s, bar.end_s);
  Axis time = svg::round_axis(0, end_s, 8);
  time.high = std::max(end_s, 1e-9), time.from = kLeft, time.to = kWidth - kRight;
  std::erase_if(time.ticks, [&](double tick) { return tick > time.high; });
  const double bottom = kTop + static_cast<double>(panels.size()) * kPanel - kPanelGap / 2;
  std::string svg = text("title", {kLeft, 26}, title) + legend();
  for (const double tick : time.ticks) {
    svg += line("grid", {time(tick), kTop - 10}, {time(tick), bottom});
    svg += text("tick middle", {time(tick), bottom + 18}, written(tick, "seconds"));
  }
  for (std::size_t i = 0; i < panels.size(); ++i) svg += drawn(panels[i], time, kTop + static_cast<double>(i) * kPanel);
  svg += text("axis middle", {(time.from + time.to) / 2, bottom + 40}, "time of one step");
  return sheet(title, kWidth, bottom + kBottom, svg);
}

}  // namespace syncopate::tools::figure
