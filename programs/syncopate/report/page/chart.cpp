// A line chart over steps, as SVG.
#include "report/page/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/page/markup.hpp"
#include "svg/axis.hpp"
#include "svg/element.hpp"

namespace syncopate::tools::report::page {
namespace {

using svg::Axis;

constexpr double kLeft = 52, kRight = 12, kTop = 12, kBottom = 38;
constexpr double kNarrow = 500;    // what a small screen shows
constexpr double kTrimmed = 0.01;  // share of a faint line that may leave the picture, at either end

struct Bounds {
  double low = INFINITY, high = -INFINITY;
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

Bounds y_bounds(const ChartOptions& options, const std::vector<Line>& lines) {
  Bounds bounds;
  for (const Line& line : lines) {
    std::vector<double> values;
    for (const record::Point& point : line.points) values.push_back(point.y);
    if (values.empty()) continue;
    std::ranges::sort(values);
    const bool faint = line.look.starts_with("raw");
    const auto cut = static_cast<std::size_t>(faint ? kTrimmed * static_cast<double>(values.size()) : 0);
    bounds.add(values[cut]);
    bounds.add(values[values.size() - 1 - cut]);
  }
  if (options.low) bounds.add(*options.low);
  if (options.high) bounds.add(*options.high);
  return bounds;
}

std::string grid(const ChartOptions& options, const Axis& x, const Axis& y) {
  std::string svg;
  for (const double tick : y.ticks) {
    const char* const look = tick == y.ticks.front() ? "base" : "grid";
    svg += svg::line(look, {x.from, y(tick)}, {x.to, y(tick)});
    svg += svg::text(
        "tick", {x.from - 8, y(tick) + 4},
        options.percent ? decimal(tick * 100, std::max(0, y.digits - 2)) + "\u202f%" : decimal(tick, y.digits),
        svg::kAtEnd);
  }
  for (const double tick : x.ticks)
    svg += svg::text("tick", {x(tick), y.from + 18}, decimal(tick, x.digits), svg::kAtMiddle);
  return svg + svg::text("tick", {x.to, y.from + 34}, "step", svg::kAtEnd);
}

std::string drawn(const Line& line, const Axis& x, const Axis& y) {
  std::vector<svg::Point> points;
  for (const record::Point& point : line.points) points.push_back({x(point.x), y(point.y)});
  std::string svg = svg::polyline(line.look, points, fmt::format("data-label=\"{}\"", escaped(line.label)));
  if (line.look.starts_with("dots") || points.size() == 1)
    for (const svg::Point& point : points) svg += svg::circle(line.look, point, 3.5);
  return svg;
}

std::string one_chart(const ChartOptions& options, const std::vector<Line>& lines, const char* look) {
  Bounds ys = y_bounds(options, lines);
  if (options.whole) ys.high = std::max(std::ceil(ys.high), ys.low + 1);
  Axis x = svg::axis(options.first_step, options.last_step, options.width > 700 ? 10 : 5),
       y = svg::round_axis(ys.low, ys.high, options.whole ? static_cast<int>(std::min(4.0, ys.high - ys.low)) : 4);
  x.from = kLeft, x.to = options.width - kRight;
  y.from = options.height - kBottom, y.to = kTop;
  if (!options.percent && y.digits == 0 && y.high >= 10'000) x.from += 16;
  std::string svg = fmt::format(
      "<svg class=\"chart{12}\" viewBox=\"0 0 {0} {1}\" role=\"img\" aria-label=\"{2}\" data-plot=\"{3} {4} {5} {6}\" "
      "data-values=\"{7} {8} {9} {10}\"{11}>\n",
      px(options.width), px(options.height), escaped(options.title), px(x.from), px(x.to), px(y.from), px(y.to), x.low,
      x.high, y.low, y.high, options.percent ? " data-percent=\"1\"" : "", look);
  svg += grid(options, x, y);
  svg += fmt::format("<svg x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\" viewBox=\"{0} {1} {2} {3}\">\n",
                     px(x.from - 4), px(y.to - 4), px(x.to - x.from + 8), px(y.from - y.to + 8));
  for (const Line& line : lines)
    if (!line.points.empty()) svg += drawn(line, x, y);
  return svg + "</svg>\n<line class=\"cursor\"/></svg>\n";
}

}  // namespace

std::string chart(const ChartOptions& options, const std::vector<Line>& lines) {
  if (options.width <= kNarrow) return one_chart(options, lines, "");
  ChartOptions narrow = options;
  narrow.width = kNarrow;
  std::vector<Line> fewer = lines;
  for (Line& line : fewer) line.points = record::thinned(line.points, 300);
  return one_chart(options, lines, " for-wide") + one_chart(narrow, fewer, " for-narrow");
}

}  // namespace syncopate::tools::report::page
