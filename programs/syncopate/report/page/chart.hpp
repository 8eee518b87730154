// A line chart over steps, as SVG.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/record/series.hpp"

namespace syncopate::tools::report::page {

struct Line {
  std::string label;
  std::string look;  ///< CSS classes: "raw" (faint), "smooth" (strong), "dots", and a colour
  std::vector<record::Point> points;
};

struct ChartOptions {
  std::string title;                     ///< what is drawn, for readers who cannot see it
  double first_step = 0, last_step = 1;  ///< the x axis
  double width = 1040, height = 250;
  std::optional<double> low = {}, high = {};  ///< what the y axis shows in any case
  bool percent = false;                       ///< y values are shares
  bool whole = false;                         ///< y values are counts: no ticks between whole numbers
};

/// A wide chart comes with a narrow one, of which the style sheet shows one.
/// Lines without points are left out. A few extreme values do not set the scale: the range is that of the strong lines
/// and of 98 % of the faint ones, the rest leaves the picture at its edge.
[[nodiscard]] std::string chart(const ChartOptions& options, const std::vector<Line>& lines);

}  // namespace syncopate::tools::report::page
