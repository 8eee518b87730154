// An axis: a range of values on a range of pixels, with round ticks.
#pragma once

#include <string>
#include <vector>

namespace syncopate::tools::report {

struct Axis {
  double low = 0, high = 1;   ///< values
  double from = 0, to = 1;    ///< pixels
  std::vector<double> ticks;  ///< within [low, high], 1, 2 or 5 times a power of ten apart
  int digits = 0;             ///< decimals a tick needs

  [[nodiscard]] double operator()(double value) const { return from + (value - low) / (high - low) * (to - from); }
  [[nodiscard]] std::string label(double tick) const;
};

/// About `wanted` ticks on [low, high]; `low` < `high` is made true by widening.
[[nodiscard]] Axis axis(double low, double high, int wanted);
/// The same with both ends moved outward to ticks.
[[nodiscard]] Axis round_axis(double low, double high, int wanted);

}  // namespace syncopate::tools::report
