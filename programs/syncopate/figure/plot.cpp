// Plot: laying a figure out, and its SVG.
#include "figure/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "figure/canvas.hpp"
#include "svg/element.hpp"
#include "syncopate/error.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::figure {

namespace {

using svg::Axis;
using svg::line;
using svg::px;
using svg::Steps;
using svg::text;

constexpr double kWidth = 880, kHeight = 480, kLeft = 84, kRight = 250, kTop = 52, kBottom = 58;
constexpr double kLabelHeight = 15;  // more curves than colours: the same again, dashed

Axis axis_for(const AxisTitle& axis, double low, double high, int most) {
  if (axis.steps != Steps::linear && low <= 0)
    throw Misuse(fmt::format("{} is {} somewhere; a logarithmic axis shows values above 0 only", axis.text, low));
  return svg::round_axis(axis.steps == Steps::linear ? std::min(low, 0.0) : low, high, most, axis.steps);
}

std::string frame(const Plot& plot, const Axis& x, const Axis& y) {
  std::string svg = text("title", {kLeft, 26}, plot.title);
  for (const double tick : y.ticks) {
    svg += line("grid", {x.from, y(tick)}, {x.to, y(tick)});
    svg += text("tick end", {x.from - 8, y(tick) + 4}, written(tick, plot.y.text));
  }
  for (const double tick : x.ticks) {
    svg += line("grid", {x(tick), y.from}, {x(tick), y.to});
    svg += text("tick middle", {x(tick), y.from + 20}, written(tick, plot.x.text));
  }
  svg += text("axis middle", {(x.from + x.to) / 2, kHeight - 12}, plot.x.text);
  const double middle = (y.from + y.to) / 2;
  return svg +
         text("axis middle", {18, middle}, plot.y.text, fmt::format("transform=\"rotate(-90 18 {})\"", px(middle)));
}

std::string drawn(const Curve& curve, const Axis& x, const Axis& y, std::size_t index) {
  const char* const colour = kColours[index % kColours.size()];
  const std::string look =
      fmt::format("stroke=\"{}\"{}", colour, index < kColours.size() ? "" : " stroke-dasharray=\"5 4\"");
  std::vector<svg::Point> points;
  std::string dots;
  for (const Sample& sample : curve.samples) {
    const double at = x(sample.x);
    points.push_back({at, y(sample.y)});
    if (sample.high > sample.low) dots += line("spread", {at, y(sample.low)}, {at, y(sample.high)}, look);
    dots += svg::circle("", points.back(), 3, fmt::format("fill=\"{}\"", colour));
  }
  return svg::polyline("curve", points, look) + dots;
}

/// Names at the ends of their curves, moved apart where they would cover each other, joined to them by a thin line.
std::string names(const Plot& plot, const Axis& x, const Axis& y) {
  struct Name {
    std::size_t curve;
    double end, place;
  };
  std::vector<Name> names;
  for (std::size_t i = 0; i < plot.curves.size(); ++i) {
    const double end = y(plot.curves[i].samples.back().y);
    names.push_back({i, end, end});
  }
  std::ranges::stable_sort(names, {}, &Name::end);
  for (std::size_t i = 1; i < names.size(); ++i)
    names[i].place = std::max(names[i].place, names[i - 1].place + kLabelHeight);
  double lowest = y.from;
  for (std::size_t i = names.size(); i-- > 0; lowest = names[i].place - kLabelHeight)
    names[i].place = std::min(names[i].place, lowest);
  std::string svg;
  for (const Name& name : names) {
    const Curve& curve = plot.curves[name.curve];
    const char* const colour = kColours[name.curve % kColours.size()];
    svg += line("lead", {x(curve.samples.back().x) + 5, name.end}, {x.to + 18, name.place},
                fmt::format("stroke=\"{}\"", colour));
    svg += text("name", {x.to + 22, name.place + 4}, curve.label, fmt::format("style=\"fill:{}\"", colour));
  }
  return svg;
}

}  // namespace

std::string written(double value, const std::string& axis_title) {
  if (value == 0) return "0";
  if (axis_title.find("seconds") != std::string::npos || axis_title.ends_with("_s")) return format_seconds(value);
  if (axis_title.find("bytes") != std::string::npos) return format_bytes(value);
  return fmt::format("{:g}", value);
}

std::string svg_of(const Plot& plot) {
  double x_low = INFINITY, x_high = -INFINITY, y_low = INFINITY, y_high = -INFINITY;
  for (const Curve& curve : plot.curves)
    for (const Sample& sample : curve.samples) {
      x_low = std::min(x_low, sample.x), x_high = std::max(x_high, sample.x);
      y_low = std::min(y_low, sample.low), y_high = std::max(y_high, sample.high);
    }
  if (!(x_low <= x_high)) throw Misuse("nothing to draw: no curve has a point");
  Axis x = axis_for(plot.x, x_low, x_high, 9), y = axis_for(plot.y, y_low, y_high, 8);
  if (plot.x.steps == Steps::linear) x.low = x_low, x.high = std::max(x_high, x_low + 1);
  std::erase_if(x.ticks, [&](double tick) { return tick < x.low || tick > x.high; });
  x.from = kLeft, x.to = kWidth - kRight, y.from = kHeight - kBottom, y.to = kTop;
  std::string svg = frame(plot, x, y);
  for (std::size_t i = 0; i < plot.curves.size(); ++i) svg += drawn(plot.curves[i], x, y, i);
  return sheet(plot.title, kWidth, kHeight, svg + names(plot, x, y));
}

}  // namespace syncopate::tools::figure
