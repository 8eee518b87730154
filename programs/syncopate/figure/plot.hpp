// Plot: lines over one quantity, as one self-contained SVG that also prints well.
#pragma once

#include <string>
#include <vector>

#include "svg/axis.hpp"

namespace syncopate::tools::figure {

struct Sample {
  double x = 0, y = 0;
  double low = 0, high = 0;  ///< spread of y; equal to y where there is none
};

struct Curve {
  std::string label;
  std::vector<Sample> samples;  ///< in ascending x
};

struct AxisTitle {
  std::string text;  ///< also decides how its values are written: "bytes", "… seconds", "…_s", else plain numbers
  svg::Steps steps = svg::Steps::linear;
};

struct Plot {
  std::string title;
  AxisTitle x, y;
  std::vector<Curve> curves;
};

/// Each curve carries its name at its end. Throws Misuse: nothing to draw, or values <= 0 on a logarithmic axis.
[[nodiscard]] std::string svg_of(const Plot& plot);

/// A value as the ticks of an axis of that title show it.
[[nodiscard]] std::string written(double value, const std::string& axis_title);

}  // namespace syncopate::tools::figure
